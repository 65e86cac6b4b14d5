import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that run for half a minute and more: what starts last decides when all is over. `npm test -- --report` shows them. */
const LONG = [
  "vm/cgroup-v2",
  "vm/microsandbox.test",
  "containers/docker",
  "containers/podman",
  "sandbox-floods",
  "mounted-folders-",
  "e2e/browser-trouble",
  "e2e/sandbox-lives",
  "escape/browser-storms",
  "sandbox-faults",
  "integration/tracing",
  "sandbox-attacks",
  "integration/faults",
  "escape/gone-clients",
  "handlers/watching",
  "integration/dashboard-changes",
  "tooling/package",
  "e2e/browser-fields",
  "escape/connection-floods",
  "e2e/sandbox-files-http",
  "escape/sandbox-injection",
  "integration/lifecycle-http",
  "escape/sandbox-forged-frames",
  "escape/token-http",
  "escape/fuzz",
  "escape/early-sigterm",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = LONG.findIndex((part) => moduleId.includes(part));
      return place === -1 ? LONG.length : place;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
