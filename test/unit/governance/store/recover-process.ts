// A server of another container on the place that the argument names: prints how many calls it settled.
import { openStoreAt } from "./open-store-at.ts";

const store = await openStoreAt(process.argv[2] ?? "");
process.stdout.write(`${await store.recover()}\n`);
await store.close();
