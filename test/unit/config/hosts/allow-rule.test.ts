import { describe, expect, test } from "vitest";
import { classifyAddress } from "../../../../src/config/hosts/address-class.ts";
import { AllowList } from "../../../../src/sandbox/network/admission.ts";
import { type HostRule, parseAllowRule } from "../../../../src/config/hosts/allow-rule.ts";
import { parseHost } from "../../../../src/config/hosts/host.ts";
import { OwlError } from "../../../../src/errors/owl-error.ts";

function listOf(...texts: string[]): AllowList {
  return new AllowList(texts.map(parseAllowRule).filter((rule): rule is HostRule => rule.kind !== "preset"));
}

function allows(list: AllowList, host: string, port: number): boolean {
  const parsed = parseHost(host);
  return "host" in parsed && list.find(parsed.host, port) !== undefined;
}

function opens(list: AllowList, address: string, port: number): boolean {
  const facts = classifyAddress(address);
  if (facts === undefined) throw new Error(`${address} needs no opening`);
  return list.findOpening(address, { port, facts }) !== undefined;
}

describe("a rule allows", () => {
  test.each([
    ["example.com", "example.com", 443, true],
    ["example.com", "EXAMPLE.com.", 80, true],
    ["example.com", "www.example.com", 443, false],
    ["example.com", "example.com", 22, false],
    ["example.com", "example.com", 8443, false],
    ["example.com", "example.com.evil.test", 443, false],
    ["example.com", "notexample.com", 443, false],
    ["example.com:8443", "example.com", 8443, true],
    ["example.com:8443", "example.com", 443, false],
    ["*.example.com", "a.example.com", 443, true],
    ["*.example.com", "a.b.example.com", 443, true],
    ["*.example.com", "example.com", 443, false],
    ["*.example.com", "evilexample.com", 443, false],
    ["*.example.com:8080", "a.example.com", 8080, true],
    ["Bücher.example", "xn--bcher-kva.example", 443, true],
    ["*.bücher.example", "a.xn--bcher-kva.example", 443, true],
    ["10.0.0.5:8080", "10.0.0.5", 8080, true],
    ["10.0.0.5:8080", "0xa000005", 8080, true],
    ["10.0.0.5", "10.0.0.6", 443, false],
    ["10.0.0.0/24:8080", "10.0.0.77", 8080, true],
    ["10.0.0.0/24", "10.0.1.1", 443, false],
    ["[fd00::1]:8080", "[fd00:0::1]", 8080, true],
    ["fd00::/64", "[fd00::1:2]", 443, true],
    ["[fd00::/64]:99", "[fd00::9]", 99, true],
  ])("%s: %s:%i is %s", (rule, host, port, wanted) => expect(allows(listOf(rule), host, port)).toBe(wanted));

  test("nothing when the list is empty", () => expect(allows(listOf(), "example.com", 443)).toBe(false));
});

describe("an address that is not public is opened", () => {
  test.each([
    ["by a rule with the address", "10.0.0.5:8080", "10.0.0.5", 8080, true],
    ["by a range", "10.0.0.0/8", "10.9.9.9", 443, true],
    ["not on another port", "10.0.0.5:8080", "10.0.0.5", 443, false],
    ["not by a name", "example.com", "10.0.0.5", 443, false],
    ["for metadata by the address itself", "169.254.169.254:80", "169.254.169.254", 80, true],
    ["for metadata not by a range", "169.254.0.0/16", "169.254.169.254", 80, false],
    ["not in the IPv4-mapped spelling", "10.0.0.5", "::ffff:10.0.0.5", 443, false],
  ])("%s", (_, rule, address, port, wanted) => expect(opens(listOf(rule), address, port)).toBe(wanted));
});

describe("a rule is refused with the reason", () => {
  test.each([
    ["*", /every host/],
    ["*:443", /every host/],
    ["*.com", /top-level domain/],
    ["*.co.uk", /public suffix/],
    ["*.com.au", /public suffix/],
    ["*.github.io", /anybody can get a name below github.io/],
    ["a*.example.com", /in front/],
    ["*example.com", /in front/],
    ["a.*.com", /in front/],
    ["*.*.com", /in front/],
    ["*.10.0.0.1", /in front/],
    ["https://example.com/", /URL/],
    ["user@example.com", /user name/],
    ["example.com/path", /only an address/],
    ["example.com:0", /port/],
    ["example.com:65536", /port/],
    ["example.com:", /port/],
    ["example.com:http", /port/],
    ["", /empty/],
    ["0.0.0.0/0", /opens too much/],
    ["::/0", /opens too much/],
    ["10.0.0.0/33", /prefix/],
    ["0x7f.1", /unusual spelling/],
    ["0.0.0.0", /never opened/],
    ["::ffff:10.0.0.5", /never opened/],
    ["[::ffff:10.0.0.5]:80", /never opened/],
    ["224.0.0.1", /never opened/],
    ["[fe80::1%eth0]:80", /zone id/],
    ["example..com", /label/],
    ["exa mple.com", /characters/],
    ["example.com\r\nx", /characters/],
  ])("%j", (text, reason) => {
    expect(() => parseAllowRule(text)).toThrow(reason);
    expect(() => parseAllowRule(text)).toThrow(OwlError);
  });
});

test("pip and npm are presets, not hosts", () => {
  expect(["pip", "npm"].map(parseAllowRule)).toEqual([
    { kind: "preset", text: "pip", preset: "pip" },
    { kind: "preset", text: "npm", preset: "npm" },
  ]);
});
