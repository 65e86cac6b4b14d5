import ts from "typescript-6";

export interface Question {
  /** Declarations that the type needs. */
  readonly given: string;
  readonly type: string;
  readonly values: readonly unknown[];
}

/** Asks the compiler which values are assignable to which types: all questions in one program, one line for each value. */
export function judge(questions: readonly Question[]): boolean[][] {
  const sources = new Map(questions.map((question, index) => [`/q${index}.ts`, sourceOf(question)]));
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    target: ts.ScriptTarget.ESNext,
    lib: ["lib.esnext.d.ts"],
    types: [],
  };
  const base = ts.createCompilerHost(options);
  const host: ts.CompilerHost = {
    ...base,
    fileExists: (path) => sources.has(path) || base.fileExists(path),
    readFile: (path) => sources.get(path) ?? base.readFile(path),
    getSourceFile(path, target) {
      const text = sources.get(path);
      return text === undefined ? base.getSourceFile(path, target) : ts.createSourceFile(path, text, target);
    },
  };
  const program = ts.createProgram({ rootNames: [...sources.keys()], options, host });
  return questions.map(({ values }, index) => {
    const file = program.getSourceFile(`/q${index}.ts`);
    if (file === undefined) throw new Error("the compiler lost a file");
    const wrong = new Set(
      program.getSemanticDiagnostics(file).map(({ start = 0 }) => file.getLineAndCharacterOfPosition(start).line),
    );
    if (wrong.has(0)) throw new Error(`the declarations are wrong: ${sources.get(file.fileName)?.split("\n")[0]}`);
    return values.map((_, line) => !wrong.has(line + 1));
  });
}

function sourceOf({ given, type, values }: Question): string {
  const lines = values.map((value, line) => `export const v${line}: Judged = ${JSON.stringify(value)};`);
  return [`${given.replaceAll("\n", " ")} type Judged = ${type};`, ...lines].join("\n");
}
