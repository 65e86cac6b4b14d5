import { sign, type KeyObject } from "node:crypto";

const SEQUENCE = 0x30;
const ECDSA_WITH_SHA256 = der(SEQUENCE, der(0x06, Buffer.from("2a8648ce3d040302", "hex")));
const NO_NAME = der(SEQUENCE);

/** Node reads certificates and makes none: this writes the least that X.509 allows, signed with a P-256 key. */
export function selfSignedCertificatePem({
  publicKey,
  privateKey,
  endsAt = "491231235959Z",
}: {
  publicKey: KeyObject;
  privateKey: KeyObject;
  /** In UTC, as YYMMDDhhmmssZ. */
  endsAt?: string;
}): string {
  const validity = der(SEQUENCE, utcTime("200101000000Z"), utcTime(endsAt));
  const serial = der(0x02, Buffer.from([1]));
  const spki = publicKey.export({ type: "spki", format: "der" });
  const toBeSigned = der(SEQUENCE, serial, ECDSA_WITH_SHA256, NO_NAME, validity, NO_NAME, spki);
  const signature = der(0x03, Buffer.from([0]), sign("sha256", toBeSigned, privateKey));
  const certificate = der(SEQUENCE, toBeSigned, ECDSA_WITH_SHA256, signature);
  return `-----BEGIN CERTIFICATE-----\n${certificate.toString("base64")}\n-----END CERTIFICATE-----\n`;
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
