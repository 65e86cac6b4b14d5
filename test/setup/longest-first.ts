import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that run for half a minute and more: what starts last decides when all is over. `npm test -- --report` shows them. */
const LONG = [
  "vm/cgroup-v2",
  "vm/microsandbox.test",
  "containers/docker",
  "containers/podman",
  "e2e/sandbox-lives",
  "e2e/browser-trouble",
  "sandbox-floods",
  "mounted-folders-",
  "e2e/doctor",
  "dashboard/sandbox",
  "escape/sandbox-injection",
  "e2e/sandbox-files-http",
  "dashboard/actions",
  "integration/tracing",
  "escape/sandbox-forged-frames",
  "escape/stubborn-trees",
  "escape/gone-clients",
  "integration/faults",
  "escape/guest-floods",
  "handlers/watching",
  "integration/dashboard-changes",
  "tooling/package",
  "sandbox-attacks",
  "escape/bubblewrap-cell",
  "dashboard/views",
  "dashboard/trouble",
  "dashboard/sessions",
  "e2e/browser-fields",
  "e2e/sandbox-templates",
  "escape/sandbox-evictions",
  "escape/ledger-",
  "escape/killed-calls",
  "integration/lifecycle-http",
  "escape/connection-floods",
  "escape/token-http",
  "escape/fuzz",
  "sandbox-faults",
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
