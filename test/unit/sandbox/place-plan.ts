import type { PlacePlan } from "../../../src/sandbox/place.ts";

/** For tests in which nothing starts. */
export const PLAN: PlacePlan = {
  cellId: "cell",
  folder: "/nowhere",
  template: "python",
  language: "python",
  flavor: "small",
  env: {},
  volumes: [],
  network: { allow: [] },
};
