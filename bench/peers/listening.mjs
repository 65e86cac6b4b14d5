/** Says where a peer listens, in the same words as our server does. */
export function announce(server) {
  const { port } = server.address();
  process.stderr.write(`${JSON.stringify({ message: "listening", url: `http://127.0.0.1:${port}` })}\n`);
}
