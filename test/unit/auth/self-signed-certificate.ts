import { sign, type KeyObject } from "node:crypto";

const SEQUENCE = 0x30;
const ECDSA_WITH_SHA256 = der(SEQUENCE, der(0x06, Buffer.from("2a8648ce3d040302", "hex")));
const VERSION_3 = der(0xa0, der(0x02, Buffer.from([2])));
const COMMON_NAME = der(0x06, Buffer.from("550403", "hex"));
const SUBJECT_ALT_NAME = der(0x06, Buffer.from("551d11", "hex"));
const LOOPBACK_NAMES = der(SEQUENCE, der(0x82, Buffer.from("localhost")), der(0x87, Buffer.from([127, 0, 0, 1])));

/** Node reads certificates and makes none: this writes the least that X.509 allows, signed with a P-256 key. */
export function selfSignedCertificatePem({
  publicKey,
  privateKey,
  endsAt = "491231235959Z",
  commonName,
}: {
  publicKey: KeyObject;
  privateKey: KeyObject;
  /** In UTC, as YYMMDDhhmmssZ. */
  endsAt?: string;
  /** Makes it a certificate that a TLS client accepts for localhost and 127.0.0.1. */
  commonName?: string;
}): string {
  const validity = der(SEQUENCE, utcTime("200101000000Z"), utcTime(endsAt));
  const serial = der(0x02, Buffer.from([1]));
  const spki = publicKey.export({ type: "spki", format: "der" });
  const name = commonName === undefined ? der(SEQUENCE) : distinguishedName(commonName);
  const extension = der(SEQUENCE, SUBJECT_ALT_NAME, der(0x04, LOOPBACK_NAMES));
  const [version, extensions] = commonName === undefined ? [] : [VERSION_3, der(0xa3, der(SEQUENCE, extension))];
  const fields = [version, serial, ECDSA_WITH_SHA256, name, validity, name, spki, extensions];
  const toBeSigned = der(SEQUENCE, ...fields.filter((field) => field !== undefined));
  const signature = der(0x03, Buffer.from([0]), sign("sha256", toBeSigned, privateKey));
  const certificate = der(SEQUENCE, toBeSigned, ECDSA_WITH_SHA256, signature);
  return `-----BEGIN CERTIFICATE-----\n${certificate.toString("base64")}\n-----END CERTIFICATE-----\n`;
}

function distinguishedName(commonName: string): Buffer {
  return der(SEQUENCE, der(0x31, der(SEQUENCE, COMMON_NAME, der(0x0c, Buffer.from(commonName)))));
}

function utcTime(text: string): Buffer {
  return der(0x17, Buffer.from(text));
}

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
