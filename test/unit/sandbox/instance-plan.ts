import type { InstancePlan } from "../../../src/sandbox/instance-starter.ts";

/** For tests in which nothing starts. */
export const PLAN: InstancePlan = {
  instanceId: "cell",
  folder: "/nowhere",
  template: "python",
  language: "python",
  flavor: "small",
  env: {},
  volumes: [],
  network: { allow: [] },
};
