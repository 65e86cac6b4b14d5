export type Colour = readonly [red: number, green: number, blue: number];

export interface Paint {
  readonly colour: Colour;
  readonly alpha: number;
}

const known = new Map<string, Paint | undefined>();

/** A colour as a computed style has it; nothing where it cannot be told. */
export function paintOf(text: string): Paint | undefined {
  if (!known.has(text)) known.set(text, fromRgb(text) ?? fromCanvas(text));
  return known.get(text);
}

function fromRgb(text: string): Paint | undefined {
  const match = /^rgba?\((\d+),\s*(\d+),\s*(\d+)(?:,\s*([\d.]+))?\)$/.exec(text);
  if (match === null) return undefined;
  const alpha = match[4] === undefined ? 1 : Number(match[4]);
  return { colour: [Number(match[1]), Number(match[2]), Number(match[3])], alpha };
}

const canvas = new OffscreenCanvas(1, 1);

/** What a context keeps when it does not know the colour it is given. */
const UNTOUCHED = "#123456";

/** `oklch()`, `lab()`, `color()` and the like stay as they are in computed styles. A canvas shows what they look like. */
function fromCanvas(text: string): Paint | undefined {
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) return undefined;
  context.fillStyle = UNTOUCHED;
  context.fillStyle = text;
  if (context.fillStyle === UNTOUCHED) return undefined;
  context.clearRect(0, 0, 1, 1);
  context.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0, alpha = 0] = context.getImageData(0, 0, 1, 1).data;
  return { colour: [red, green, blue], alpha: alpha / 255 };
}

/** What is seen where a paint that is not solid lies on a colour. */
export function mixed({ colour, alpha }: Paint, behind: Colour): Colour {
  const channel = (index: 0 | 1 | 2): number => colour[index] * alpha + behind[index] * (1 - alpha);
  return [channel(0), channel(1), channel(2)];
}

/** What is seen where a solid colour is blended with the one behind it. A canvas has the names and the sums of styles. */
export function blended(mode: string, colour: Colour, behind: Colour): Colour {
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) return colour;
  const paint = (operation: GlobalCompositeOperation, [red, green, blue]: Colour): void => {
    context.globalCompositeOperation = "source-over";
    context.globalCompositeOperation = operation;
    context.fillStyle = `rgb(${red} ${green} ${blue})`;
    context.fillRect(0, 0, 1, 1);
  };
  paint("source-over", behind);
  // oxlint-disable-next-line typescript/consistent-type-assertions -- a canvas keeps what it has when it does not know an operation
  paint((mode === "plus-lighter" ? "lighter" : mode) as GlobalCompositeOperation, colour);
  const [red = 0, green = 0, blue = 0] = context.getImageData(0, 0, 1, 1).data;
  context.globalCompositeOperation = "source-over";
  return [red, green, blue];
}
