import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";

const KNOWN = join(import.meta.dirname, "pictures");
/** Where one looks when they differ. */
const FOUND = join(import.meta.dirname, "../../.cache/pictures");
const UPDATE = process.env["OWLCLAW_UPDATE_PICTURES"] === "1";
/** Of a channel's 255. */
const MAX_SHADE = 12;
const MAX_PIXELS = 60;

/**
 * A pixel may be any mixture of what is around it in the other picture: so edges of letters may be drawn in another way, and a colour
 * that is nowhere near in the other picture is one that has changed.
 */
const COMPARE = `async ({ known, found, maxShade }) => {
  const pixelsOf = async (base64) => {
    const image = new Image();
    image.src = "data:image/png;base64," + base64;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    return canvas.getImageData(0, 0, image.width, image.height);
  };
  const [a, b] = [await pixelsOf(known), await pixelsOf(found)];
  if (a.width !== b.width || a.height !== b.height) return { count: Infinity, diff: found };
  const { width, height } = a;
  const isAround = (one, other, x, y) => {
    for (let channel = 0; channel < 3; channel += 1) {
      let [low, high] = [255, 0];
      for (let nearY = Math.max(0, y - 1); nearY <= Math.min(height - 1, y + 1); nearY += 1) {
        for (let nearX = Math.max(0, x - 1); nearX <= Math.min(width - 1, x + 1); nearX += 1) {
          const value = other.data[(nearY * width + nearX) * 4 + channel];
          if (value < low) low = value;
          if (value > high) high = value;
        }
      }
      const value = one.data[(y * width + x) * 4 + channel];
      if (value < low - maxShade || value > high + maxShade) return false;
    }
    return true;
  };
  let count = 0;
  const diff = new ImageData(width, height);
  for (let at = 0; at < width * height; at += 1) {
    const [x, y] = [at % width, Math.floor(at / width)];
    const isSame = [0, 1, 2].every((channel) => a.data[at * 4 + channel] === b.data[at * 4 + channel]);
    const isFine = isSame || (isAround(a, b, x, y) && isAround(b, a, x, y));
    if (!isFine) count += 1;
    const shade = 255 - (255 - b.data[at * 4 + 1]) / 5;
    diff.data.set(isFine ? [shade, shade, shade, 255] : [220, 0, 60, 255], at * 4);
  }
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  canvas.getContext("2d").putImageData(diff, 0, 0);
  return { count, diff: canvas.toDataURL("image/png").split(",")[1] };
}`;

/** Says how a picture differs from the one that is known, or nothing. `page` is any page that may run scripts. */
export async function differenceOf(page: Page, name: string, picture: Buffer): Promise<string | undefined> {
  const file = join(KNOWN, `${name}.png`);
  if (UPDATE) {
    writeFileSync(file, picture);
    return undefined;
  }
  const known = readKnown(file);
  if (known === undefined) return `${name}: no picture is known; npm run pictures makes it`;
  const given = { known: known.toString("base64"), found: picture.toString("base64"), maxShade: MAX_SHADE };
  const { count, diff } = await page.evaluate<{ count: number; diff: string }>(
    `(${COMPARE})(${JSON.stringify(given)})`,
  );
  const [foundFile, diffFile] = [join(FOUND, `${name}.png`), join(FOUND, `${name}-diff.png`)];
  rmSync(diffFile, { force: true });
  if (count <= MAX_PIXELS) return undefined;
  mkdirSync(FOUND, { recursive: true });
  writeFileSync(foundFile, picture);
  writeFileSync(diffFile, Buffer.from(diff, "base64"));
  return `${name}: ${count} pixels differ: see ${diffFile}, and ${foundFile} for how it looks now. Is it meant? npm run pictures`;
}

function readKnown(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    // It was never made.
    return undefined;
  }
}
