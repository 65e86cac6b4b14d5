import { networkInterfaces } from "node:os";
import { describe, expect, test } from "vitest";
import { classifyAddress } from "../../../../src/config/hosts/address-class.ts";

describe("addresses that are not the public internet have a class", () => {
  test.each([
    ["169.254.169.254", "a cloud metadata address"],
    ["fd00:ec2::254", "a cloud metadata address"],
    ["168.63.129.16", "a cloud metadata address"],
    ["100.100.100.200", "a cloud metadata address"],
    ["127.0.0.1", "a loopback address"],
    ["127.255.255.254", "a loopback address"],
    ["::1", "a loopback address"],
    ["0.0.0.0", "an unspecified address"],
    ["0.1.2.3", "an unspecified address"],
    ["::", "an unspecified address"],
    ["10.0.0.1", "a private address"],
    ["172.16.0.1", "a private address"],
    ["172.31.255.255", "a private address"],
    ["192.168.1.1", "a private address"],
    ["fec0::1", "a private address"],
    ["169.254.1.1", "a link-local address"],
    ["fe80::1", "a link-local address"],
    ["fd12::1", "a unique-local address"],
    ["fc00::1", "a unique-local address"],
    ["100.64.0.1", "a carrier-grade NAT address"],
    ["100.127.255.255", "a carrier-grade NAT address"],
    ["224.0.0.1", "a multicast address"],
    ["239.255.255.255", "a multicast address"],
    ["ff02::1", "a multicast address"],
    ["255.255.255.255", "the broadcast address"],
    ["::ffff:8.8.8.8", "an IPv4-mapped IPv6 address"],
    ["::ffff:7f00:1", "an IPv4-mapped IPv6 address"],
    ["::7f00:1", "an IPv6 address that carries an IPv4 address"],
    ["64:ff9b::7f00:1", "an IPv6 address that carries an IPv4 address"],
    ["64:ff9b:1::1", "an IPv6 address that carries an IPv4 address"],
    ["2002:7f00:1::", "an IPv6 address that carries an IPv4 address"],
    ["2001:0:1::1", "an IPv6 address that carries an IPv4 address"],
    ["192.0.2.1", "a reserved address"],
    ["198.18.0.1", "a reserved address"],
    ["240.0.0.1", "a reserved address"],
    ["2001:db8::1", "a reserved address"],
    ["4000::1", "a reserved address"],
    ["fe80::1%eth0", "not a plain IP address"],
    ["example.com", "not a plain IP address"],
    ["127.1", "not a plain IP address"],
    ["", "not a plain IP address"],
  ])("%s is %s", (address, name) => expect(classifyAddress(address)?.name).toBe(name));
});

test.each([
  "9.9.9.9",
  "172.15.255.255",
  "172.32.0.1",
  "100.128.0.1",
  "223.255.255.255",
  "2a00:1450::1",
  "2606:4700::1",
])("%s is public", (address) => expect(classifyAddress(address)).toBeUndefined());

test("every address of the machine itself has a class", () => {
  const own = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  expect(own.map(({ address }) => classifyAddress(address)?.name).filter((name) => name === undefined)).toEqual([]);
});
