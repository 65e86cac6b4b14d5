import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { GuestStream } from "../../../../src/sandbox/runtimes/guest-stream.ts";

it("carries bytes both ways and ends when the guest's output ends", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const stream = new GuestStream(input, output);
  stream.write("to the guest");
  output.end("from the guest");
  expect(await text(stream)).toBe("from the guest");
  expect(String(input.read())).toBe("to the guest");
});

it("gives the guest's last words to whoever reads late, and closes without an error", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const stream = new GuestStream(input, output);
  const closed = new Promise((resolve) => stream.once("close", resolve));
  output.end("last words");
  input.destroy(new Error("EPIPE"));
  stream.write("too late");
  await new Promise((resolve) => setImmediate(resolve));
  expect(await text(stream)).toBe("last words");
  await closed;
  expect(stream.errored).toBeNull();
});

it("holds the guest back while nobody reads", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const stream = new GuestStream(input, output);
  for (let count = 0; count < 100; count += 1) output.write(Buffer.alloc(64 * 1024));
  await new Promise((resolve) => setImmediate(resolve));
  expect(stream.readableLength).toBeLessThan(1024 * 1024);
  expect(output.isPaused()).toBe(true);
});
