import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that run for a minute and more: what starts last decides when all is over. */
const LONG = [
  "e2e/soak",
  "containers/docker",
  "containers/podman",
  "escape/differential",
  "escape/fuzz",
  "lifecycle-http",
  "vm/cgroup-v2",
  "vm/microsandbox.test",
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
