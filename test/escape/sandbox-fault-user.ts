import { callTool } from "./http-client.ts";

type Facts = Record<string, unknown>;

/** What a call says whose interpreter or sandbox was killed while it ran. */
const WAS_HIT = /was ended by SIGKILL|sandbox_restarted/;

/** One user of one sandbox. Every answer must be right or an error; what is right is known from the calls before. */
export class FaultUser {
  readonly #origin: string;
  readonly #id: string;
  #count = 0;
  /** What the file and the variable may hold: more than one value after a call whose outcome is not known. */
  #file = new Set<string>(["none"]);
  #variable = new Set<string>();
  /** What was said when the last call failed. */
  #failure = "";
  answers = 0;
  /** Whoever wants to see that failures are said well. */
  onFailure: (text: string) => void = () => undefined;

  static async create(origin: string): Promise<FaultUser> {
    const { json, text } = await callTool(origin, "sandbox_create");
    const id = json?.result?.structuredContent?.session_id as string | undefined;
    if (id === undefined) throw new Error(`no sandbox: ${text}`);
    const user = new FaultUser(origin, id);
    await user.#call("file_write", { path: "f", content: "none" });
    return user;
  }

  private constructor(origin: string, id: string) {
    this.#origin = origin;
    this.#id = id;
  }

  async step(dice: number): Promise<void> {
    const token = `${this.#id.slice(0, 6)}-${(this.#count += 1)}`;
    if (dice < 0.25)
      this.#expect(await this.#call("shell_exec", { command: `echo ${token}` }), "stdout", [`${token}\n`]);
    else if (dice < 0.5) await this.#setVariable(token);
    else if (dice < 0.6) this.#expect(await this.#call("code_run", { code: "v" }), "value", this.#quoted());
    else if (dice < 0.8) await this.#writeFile(token);
    else this.#expect(await this.#call("file_read", { path: "f" }), "content", [...this.#file]);
  }

  /**
   * On a busy machine nobody may have noticed a kill until this call, which then is the one that it hit: it must say so,
   * and the next one works.
   */
  async expectWorks(): Promise<void> {
    const ask = (): Promise<Facts | undefined> => this.#call("code_run", { code: "print('next')" });
    const facts = (await ask()) ?? (WAS_HIT.test(this.#failure) ? await ask() : undefined);
    if (facts?.["stdout"] !== "next\n")
      throw new Error(`the next call does not work: ${JSON.stringify(facts)} ${this.#failure}`);
    this.#expect(await this.#call("file_read", { path: "f" }), "content", [...this.#file]);
  }

  async #setVariable(token: string): Promise<void> {
    const facts = await this.#call("code_run", { code: `v = '${token}'\nprint(v)` });
    this.#expect(facts, "stdout", [`${token}\n`]);
    this.#variable = new Set(facts === undefined ? [...this.#variable, token] : [token]);
  }

  async #writeFile(token: string): Promise<void> {
    const facts = await this.#call("file_write", { path: "f", content: token });
    this.#file = new Set(facts === undefined ? [...this.#file, token] : [token]);
  }

  #quoted(): string[] {
    return [...this.#variable].map((value) => `'${value}'`);
  }

  #expect(facts: Facts | undefined, field: string, allowed: readonly string[]): void {
    if (facts === undefined) return;
    this.answers += 1;
    if (allowed.some((value) => value === facts[field])) return;
    throw new Error(`wrong answer: ${field} is ${JSON.stringify(facts[field])}, right are ${JSON.stringify(allowed)}`);
  }

  /** The facts of a call that went well, nothing when it failed in whatever way. */
  async #call(name: string, args: Facts): Promise<Facts | undefined> {
    const call = callTool(this.#origin, name, { ...args, session_id: this.#id });
    const answer = await call.catch((error: Error) => ({ json: undefined, text: error.message }));
    const result = answer.json?.result;
    this.#failure = answer.text;
    const facts = result?.isError === true ? undefined : (result?.structuredContent as Facts | undefined);
    if (facts === undefined) this.onFailure(answer.text);
    return facts;
  }
}
