#!/usr/bin/env node
import { run } from "./cli/run.ts";
import { exitFlushed, processTerminal, surviveClosedPipes } from "./cli/terminal.ts";

surviveClosedPipes();
await exitFlushed(await run(process.argv.slice(2), processTerminal()));
