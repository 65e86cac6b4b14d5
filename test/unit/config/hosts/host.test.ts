import fc from "fast-check";
import { isIP } from "node:net";
import { describe, expect, test } from "vitest";
import { formatHost, parseHost } from "../../../../src/config/hosts/host.ts";

function read(text: string): string {
  const parsed = parseHost(text);
  return "host" in parsed ? `${parsed.host.kind} ${formatHost(parsed.host)}` : "refused";
}

describe("names come in one spelling", () => {
  test.each([
    ["Example.COM", "name example.com"],
    ["example.com.", "name example.com"],
    ["xn--bcher-kva.example", "name xn--bcher-kva.example"],
    ["_dmarc.example.com", "name _dmarc.example.com"],
    ["localhost", "name localhost"],
  ])("%s is %s", (text, wanted) => expect(read(text)).toBe(wanted));
});

describe("an IPv4 address in any spelling is that address", () => {
  test.each(["127.0.0.1", "2130706433", "017700000001", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.1."])(
    "%s is 127.0.0.1",
    (text) => expect(read(text)).toBe("address 127.0.0.1"),
  );
});

describe("an IPv6 address in any spelling is that address", () => {
  test.each([
    ["[::1]", "address [::1]"],
    ["[0:0:0:0:0:0:0:1]", "address [::1]"],
    ["[::ffff:127.0.0.1]", "address [::ffff:7f00:1]"],
    ["[FD00:EC2::254]", "address [fd00:ec2::254]"],
  ])("%s is %s", (text, wanted) => expect(read(text)).toBe(wanted));
});

describe("what could be read in two ways is refused", () => {
  test.each([
    ["an empty name", ""],
    ["two trailing dots", "example.com.."],
    ["an empty label", "a..example.com"],
    ["a zone id", "[fe80::1%eth0]"],
    ["a percent-encoded zone id", "[fe80::1%25eth0]"],
    ["brackets around a name", "[example.com]"],
    ["an IPv6 address without brackets", "::1"],
    ["too many numbers", "1.2.3.4.5"],
    ["a number too large", "4294967296"],
    ["a hex label at the end", "example.0x1"],
    ["percent encoding", "%3127.0.0.1"],
    ["a user name", "user@example.com"],
    ["a line break", "example.com\r\nx: y"],
    ["a NUL", "example.com\0.evil.test"],
    ["a space", "example.com evil.test"],
    ["a slash", "example.com/evil"],
    ["a backslash", "example.com\\evil"],
    ["letters of other scripts", "bücher.example"],
    ["full-width digits", "１２７.0.0.1"],
    ["an ideographic full stop", "127。0。0。1"],
    ["a label that starts with a dash", "-a.example.com"],
    ["a label of 64 characters", `${"a".repeat(64)}.com`],
    ["a name of 254 characters", `${"a.".repeat(126)}aa`],
    ["a wildcard", "*.example.com"],
  ])("%s", (_, text) => expect(read(text)).toBe("refused"));
});

test("whatever is accepted stays itself when it is read again, and no address passes as a name", () => {
  const hostish = fc.array(fc.constantFrom(...Array.from("0123456789abcfx.:[]%-_A１。@/\\ \r\0")), { maxLength: 20 });
  fc.assert(
    fc.property(hostish, (characters) => {
      const parsed = parseHost(characters.join(""));
      fc.pre("host" in parsed);
      const { host } = parsed;
      expect(parseHost(formatHost(host))).toEqual(parsed);
      // What the URL standard reads as an address must not slip through as a name, nor the other way round.
      const url = new URL(`http://${formatHost(host)}/`);
      expect(isIP(url.hostname.replace(/^\[(.*)\]$/, "$1")) !== 0).toBe(host.kind === "address");
    }),
    { numRuns: 3000 },
  );
});
