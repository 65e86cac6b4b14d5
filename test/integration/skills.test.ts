import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp } from "./harness.ts";
import { connect, type Door, type TestClient } from "./sdk-clients.ts";
import { PIXEL, REFUND, SHOP, skill, skillFolder } from "./skill-fixture.ts";
import { modern, plain } from "./http-client.ts";
import { expectedData, type JsonRpcAnswer, MODERN, type Unchecked } from "./wire-messages.ts";

const dir = skillFolder(SHOP);
const config = { skills: { dir } };
const manyDir = skillFolder(
  Object.fromEntries(
    Array.from({ length: 120 }, (_, index) => {
      const name = `skill-${String(index).padStart(3, "0")}`;
      return [`many/${name}/SKILL.md`, skill(name, `Number ${index}`, `tags: ${index % 2 === 0 ? "even" : "odd"}\n`)];
    }),
  ),
);

let server: HttpServer;
let many: HttpServer;

beforeAll(async () => {
  [server, many] = await Promise.all([
    startHttp({ config }),
    startHttp({ config: { skills: { dir: manyDir }, handlers: { paths: [] } } }),
  ]);
});

afterAll(async () => {
  await server.stop();
  await many.stop();
});

const DOORS: readonly Door[] = [
  { client: "v2", transport: "http", version: MODERN, mode: { mode: { pin: MODERN } } },
  { client: "v2", transport: "http", version: "2025-11-25" },
  { client: "v1", transport: "http", version: "2025-11-25" },
  { client: "v2", transport: "stdio", version: MODERN, mode: { mode: { pin: MODERN } } },
  { client: "v1", transport: "stdio", version: "2025-11-25" },
  { client: "v1", transport: "sse", version: "2025-11-25" },
];

function digest(content: string | Uint8Array): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

describe.each(DOORS)("skills for $client over $transport, $version", (door) => {
  let client: TestClient;
  const isModern = door.version === MODERN;
  const listed = (path: string): string => `skill://${path}${isModern ? "/SKILL.md" : ""}`;

  beforeAll(async () => {
    client = await connect(door, server.url, { config });
  });

  afterAll(() => client.close());

  async function uris(filter?: Record<string, unknown>): Promise<string[]> {
    const params = filter === undefined ? {} : { _meta: { "io.owlclaw/filter": filter } };
    const { resources } = await client.listResources(params);
    return resources.map(({ uri }: { uri: string }) => uri).filter((uri: string) => uri.startsWith("skill:"));
  }

  test("[004-R6.1] [004-R6.2] every skill is listed once, under a URI of its own", async () => {
    expect(await uris()).toEqual([
      listed("ecommerce/refund"),
      listed("ecommerce/returns/label"),
      listed("support/tone"),
    ]);
  });

  test("[004-R6.3] [004-R6.4] [004-R6.7] with what its frontmatter and the disk say of it", async () => {
    const { resources } = await client.listResources();
    const refund = resources.find(({ uri }: { uri: string }) => uri === listed("ecommerce/refund"));
    expect(refund).toEqual({
      uri: listed("ecommerce/refund"),
      name: "refund",
      title: "Refunds",
      description: "Pays money back for goods that came back.",
      mimeType: "text/markdown",
      size: Buffer.byteLength(REFUND),
      annotations: { audience: ["assistant"], lastModified: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) },
      _meta: { "io.owlclaw/skill": { category: "ecommerce", tags: ["money", "returns"], version: "1.0" } },
    });
  });

  test("[004-R6.5] [004-R15.4] filters by category and by wildcard", async () => {
    expect(await uris({ category: "ecommerce" })).toEqual([
      listed("ecommerce/refund"),
      listed("ecommerce/returns/label"),
    ]);
    expect(await uris({ uri: "skill://ecommerce/*" })).toEqual([listed("ecommerce/refund")]);
    expect(await uris({ uri: "skill://**/label" })).toEqual([listed("ecommerce/returns/label")]);
    expect(await uris({ category: "commerce" })).toEqual([]);
  });

  test("[004-R6.6] filters by tag, whatever its case", async () => {
    expect(await uris({ tag: "returns" })).toEqual([listed("ecommerce/refund"), listed("ecommerce/returns/label")]);
    expect(await uris({ tag: ["returns", "money"] })).toEqual([listed("ecommerce/refund")]);
  });

  test("a filter that is none is refused", async () => {
    await expect(uris({ colour: "red" })).rejects.toThrow(/category, tag or uri/);
    await expect(uris({ uri: "http://x/*" })).rejects.toThrow(/scheme must be/);
  });

  test("[004-R6.6] skill_search ranks by name, tag and description", async () => {
    const search = async (args: Record<string, unknown>) => {
      const { structuredContent } = await client.callTool({ name: "skill_search", arguments: args });
      return structuredContent.skills.map(({ uri }: { uri: string }) => uri);
    };
    expect(await search({ query: "returns" })).toEqual(["skill://ecommerce/returns/label", "skill://ecommerce/refund"]);
    expect(await search({ query: "customers" })).toEqual(["skill://support/tone"]);
    expect(await search({ tags: ["parcel"] })).toEqual(["skill://ecommerce/returns/label"]);
    expect(await search({ query: "refund label" })).toEqual([]);
    expect(await search({ limit: 1 })).toEqual(["skill://ecommerce/refund"]);
  });

  test("[004-R7.1] [004-R7.4] [004-R7.6] reads the whole text with its digest, by either URI", async () => {
    for (const uri of ["skill://ecommerce/refund", "skill://ecommerce/refund/SKILL.md"]) {
      const { contents } = await client.readResource({ uri });
      expect(contents).toEqual([
        {
          uri,
          mimeType: "text/markdown",
          text: REFUND,
          _meta: {
            "io.owlclaw/content": {
              digest: digest(REFUND),
              size: Buffer.byteLength(REFUND),
              lastModified: expect.any(String),
            },
          },
        },
      ]);
    }
  });

  test("reads the files of a skill, text and not", async () => {
    const limits = await client.readResource({ uri: "skill://ecommerce/refund/references/limits.md" });
    expect(limits["contents"]).toMatchObject([{ text: SHOP["ecommerce/refund/references/limits.md"] }]);
    const logo = await client.readResource({ uri: "skill://ecommerce/refund/assets/logo.png" });
    expect(logo["contents"]).toMatchObject([{ mimeType: "image/png", blob: PIXEL.toString("base64") }]);
  });

  test("[004-R7.5] reads a range of bytes; one that cuts a character comes as bytes", async () => {
    const text = String(SHOP["ecommerce/refund/references/limits.md"]);
    const read = async (range: string) => {
      const params = { uri: "skill://ecommerce/refund/references/limits.md", _meta: { "io.owlclaw/read": { range } } };
      const { contents } = await client.readResource(params);
      return contents[0];
    };
    expect(await read("bytes=2-7")).toMatchObject({
      text: "Limits",
      _meta: {
        "io.owlclaw/content": { digest: digest(text), size: Buffer.byteLength(text), range: { start: 2, end: 8 } },
      },
    });
    expect(await read("bytes=-9")).toMatchObject({ text: "manager.\n" });
    const cut = await read("bytes=14-14");
    expect(Buffer.from(cut.blob, "base64")).toEqual(Buffer.from(text).subarray(14, 15));
    await expect(read("bytes=9999-")).rejects.toThrow(/none of them are in the range/);
    await expect(read("lines=1-2")).rejects.toThrow(/range or ifNoneMatch/);
  });

  test("[004-R7.7] what the client has is not sent again", async () => {
    const read = async (ifNoneMatch: string) => {
      const params = { uri: "skill://ecommerce/refund", _meta: { "io.owlclaw/read": { ifNoneMatch } } };
      return (await client.readResource(params))["contents"][0];
    };
    expect(await read(digest(REFUND))).toMatchObject({
      text: "",
      _meta: { "io.owlclaw/content": { notModified: true, digest: digest(REFUND) } },
    });
    expect(await read(digest("other"))).toMatchObject({ text: REFUND });
  });

  test("has a template, and completes its path", async () => {
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }: { uriTemplate: string }) => uriTemplate)).toContain(
      "skill://{+path}",
    );
    const complete = async (value: string) =>
      (
        await client.complete({
          ref: { type: "ref/resource", uri: "skill://{+path}" },
          argument: { name: "path", value },
        })
      )["completion"].values;
    expect(await complete("ecom")).toEqual(["ecommerce/refund", "ecommerce/returns/label"]);
    expect(await complete("ecommerce/refund/re")).toEqual(["ecommerce/refund/references/limits.md"]);
  });
});

type Ask = (method: string, params?: Record<string, unknown>, meta?: Record<string, unknown>) => Promise<JsonRpcAnswer>;

describe.each(["2025-03-26", MODERN])("skills on the wire in %s", (version) => {
  const isModern = version === MODERN;
  const askAt =
    (url: () => string): Ask =>
    async (method, params = {}, meta = {}) =>
      (isModern
        ? await modern(url(), method, params, { meta })
        : await plain(url(), method, { ...params, _meta: meta })
      ).body;
  const ask = askAt(() => server.url);

  test.each([
    "skill://support/nothing",
    "skill://support",
    "skill://support/broken",
    "skill://ecommerce/refund/references",
    "skill://ecommerce/refund/references/other.md",
  ])("[004-R7.3] %s is not there: -32002 up to 2025-11-25, -32602 later", async (uri) => {
    const { error } = await ask("resources/read", { uri });
    expect(error).toMatchObject({
      code: isModern ? -32602 : -32002,
      data: expectedData("resource_not_found", { uri }),
    });
  });

  test.each([
    "skill://ecommerce/../../etc/passwd",
    "skill://ecommerce/%2e%2e/refund",
    "skill://ecommerce/refund/%2Fetc%2Fpasswd",
    "skill://ecommerce/refund%00",
    "skill://ecommerce/*",
    "skill://ecommerce/refund?x",
  ])("[004-R7.2] [004-R15.2] %s is refused with the reason", async (uri) => {
    const { error } = await ask("resources/read", { uri });
    expect(error).toMatchObject({
      code: -32602,
      message: expect.stringContaining("is not a skill URI: "),
      data: expectedData("invalid_params", { uri }),
    });
  });

  test("[004-R6.8] 120 skills come in pages of 50, each once; filtered ones too", async () => {
    const askMany = askAt(() => many.url);
    const pages = async (filter?: Record<string, unknown>): Promise<Unchecked[][]> => {
      const found: Unchecked[][] = [];
      const meta = filter === undefined ? {} : { "io.owlclaw/filter": filter };
      let cursor: unknown;
      do {
        const { result } = await askMany("resources/list", cursor === undefined ? {} : { cursor }, meta);
        found.push(result?.["resources"]);
        cursor = result?.["nextCursor"];
      } while (cursor !== undefined);
      return found;
    };
    const all = await pages();
    expect(all.map((page) => page.length)).toEqual([50, 50, 20]);
    expect(new Set(all.flat().map(({ uri }) => uri)).size).toBe(120);
    const odd = await pages({ tag: "odd" });
    expect(odd.map((page) => page.length)).toEqual([50, 10]);
  });
});

test("the skills extension lists skills with the digests of their files", async () => {
  const ask: Ask = async (method, params = {}) => (await modern(server.url, method, params)).body;
  const { result } = await ask("skills/list");
  expect(result).toMatchObject({ ttlMs: 0, cacheScope: "private" });
  const { skills } = result ?? {};
  expect(skills.map(({ uri }: { uri: string }) => uri)).toEqual(
    [
      "skill://ecommerce/refund/SKILL.md",
      "skill://support/tone/SKILL.md",
      "skill://ecommerce/returns/label/SKILL.md",
    ].sort(),
  );
  const got = await ask("skills/get", { uri: "skill://ecommerce/refund/SKILL.md" });
  expect(got.result?.["skill"]).toMatchObject({
    frontmatter: { name: "refund", metadata: { tags: "money, returns", version: "1.0" } },
    resources: Object.entries(SHOP)
      .filter(([name]) => name.startsWith("ecommerce/refund/"))
      .map(([name, content]) => ({
        uri: `skill://${name}`,
        digest: digest(content),
        size: Buffer.byteLength(content),
      }))
      .sort((a, b) => (a.uri < b.uri ? -1 : 1)),
  });
  const folder = await ask("resources/directory/read", { uri: "skill://ecommerce/refund" });
  expect(folder.result?.["resources"].map(({ name, mimeType }: Unchecked) => [name, mimeType])).toEqual([
    ["SKILL.md", "text/markdown"],
    ["assets", "inode/directory"],
    ["references", "inode/directory"],
  ]);
  for (const uri of ["skill://ecommerce/refund/SKILL.md", "skill://ecommerce", "skill://x/../y"])
    expect((await ask("resources/directory/read", { uri })).error?.code).toBe(-32602);
  expect((await ask("skills/get", { uri: "skill://support/broken/SKILL.md" })).error?.code).toBe(-32602);
});

test("revisions before it have no skills extension", async () => {
  expect((await plain(server.url, "skills/list")).body.error?.code).toBe(-32601);
});

test("a server without skills has neither the tool nor the extension", async () => {
  const bare = await startHttp({ config: { handlers: { paths: [] } } });
  const { body } = await plain(bare.url, "tools/list");
  expect(body.result?.["tools"].map(({ name }: { name: string }) => name)).not.toContain("skill_search");
  const discovered = await modern(bare.url, "server/discover");
  expect(discovered.body.result?.["capabilities"].extensions).not.toHaveProperty("io.modelcontextprotocol/skills");
  expect((await modern(bare.url, "skills/list")).body.error?.code).toBe(-32601);
  expect((await fetch(`${bare.origin}/skills/ecommerce/refund`)).status).toBe(404);
  await bare.stop();
});
