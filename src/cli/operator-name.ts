import { userInfo } from "node:os";

/** Who acts is the user of the machine: only the owner of the data folder can reach the server at all. */
export function operatorName(): string {
  return `local:${userInfo().username}`;
}
