import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPython, PYTHON_FOLDER } from "../../../src/handlers/python/python-command.ts";

const STYLES: Readonly<Record<string, string>> = {
  google: `"""Searches orders.

    Looks in all shops,
    the closed ones too.

    Args:
        text (str): Words to look for,
            at least two.
        limit: Most orders
            to return.
        *shops: Only these shops.

    Returns:
        dict: What was found.

    Raises:
        ValueError: Never.

    Skill: shop/orders
    """`,
  numpy: `"""Searches orders.

    Looks in all shops,
    the closed ones too.

    Parameters
    ----------
    text : str
        Words to look for,
        at least two.
    limit : int, optional
        Most orders
        to return.
    *shops
        Only these shops.

    Returns
    -------
    dict
        What was found.

    Raises
    ------
    ValueError
        Never.

    Skill: shop/orders
    """`,
  rest: `"""Searches orders.

    Looks in all shops,
    the closed ones too.

    :param text: Words to look for,
        at least two.
    :type text: str
    :param int limit: Most orders
        to return.
    :param shops: Only these shops.
    :returns: What was found.
    :rtype: dict
    :raises ValueError: Never.

    Skill: shop/orders
    """`,
};

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-docstrings-"));
let functions: readonly Readonly<Record<string, unknown>>[];

beforeAll(async () => {
  const file = path.join(folder, "styles.py");
  const source = Object.entries(STYLES).map(
    ([style, docstring]) =>
      `def ${style}(text: str, limit: int = 10, *shops: str) -> dict:\n    ${docstring}\n    return {}\n`,
  );
  writeFileSync(file, source.join("\n\n"));
  const python = await findPython({ python: "", env: process.env });
  const describeFile =
    "import json, sys\nfrom owlclaw.describe import LoadedModule\nprint(json.dumps(LoadedModule(sys.argv[1]).report()))";
  const env = { ...process.env, PYTHONPATH: PYTHON_FOLDER };
  const report = JSON.parse(execFileSync(python, ["-B", "-c", describeFile, file], { env, encoding: "utf8" }));
  functions = report.functions;
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("[004-R4.5] [004-R14.3] a docstring gives the texts of the tool and of its parameters", () => {
  test.each(Object.keys(STYLES))("in the style %s", (style) => {
    expect(functions.find(({ name }) => name === style)).toMatchObject({
      description: "Searches orders.\n\nLooks in all shops,\nthe closed ones too.",
      skill: "shop/orders",
      inputSchema: {
        properties: {
          text: { type: "string", description: "Words to look for, at least two." },
          limit: { type: "integer", description: "Most orders to return.", default: 10 },
          shops: { type: "array", description: "Only these shops." },
        },
        required: ["text"],
      },
    });
  });
});
