import type { InstanceSpec, TemplateTree } from "./runtime.ts";

/** The system inside is read-only, so that pip puts packages into the workspace: nothing of the system's can break. */
const PACKAGE_ENVIRONMENT = { PIP_BREAK_SYSTEM_PACKAGES: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1" };

export interface EnvironmentParts {
  readonly template: TemplateTree | undefined;
  /** Folders inside, between those of the template and that of the workspace. */
  readonly path: readonly string[];
  /** Of the runtime itself. */
  readonly own: Readonly<Record<string, string>>;
}

/** Everything a program inside can read of an environment: nothing of the server's own. */
export function instanceEnvironment(
  spec: InstanceSpec,
  { template, path, own }: EnvironmentParts,
): Record<string, string> {
  const folders = [...(template?.path ?? []), ...path, `${spec.workspacePath}/.local/bin`];
  return {
    HOME: spec.workspacePath,
    PATH: [...new Set(folders)].join(":"),
    LANG: "C.UTF-8",
    TMPDIR: "/tmp",
    USER: "sandbox",
    LOGNAME: "sandbox",
    SHELL: "/bin/bash",
    ...PACKAGE_ENVIRONMENT,
    ...template?.env,
    ...spec.env,
    OWLCLAW_WORKSPACE: spec.workspacePath,
    ...own,
  };
}
