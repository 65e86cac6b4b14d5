/**
 * Sends recorded requests to the server, over every transport and in every revision, and compares the answers with the
 * committed ones in `recording/`. An answer may differ in what `recording.ts` replaces: ids, times, trace ids, states,
 * what is left of a quota, and the order of members in objects that the engine composes of parts.
 *
 * After a change of the wire that is meant: OWLCLAW_UPDATE_WIRE=1 npm test -- test/integration/wire
 * writes the recording again, and the diff shows what clients will see.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { differences } from "./recording.ts";
import { DIFFERENT_READERS, onEveryConnection } from "./wire-connections.ts";
import { overHttp } from "./wire-http.ts";
import { BENT, CALLS, LOGGING, OTHER_METHODS, TEXTS } from "./wire-requests.ts";
import { changes, handshakes, listening, openQuestions, questions, rounds, tasks } from "./wire-scenes.ts";
import { startWireServer, type WireServer } from "./wire-server.ts";

let server: WireServer;

beforeAll(async () => {
  server = await startWireServer();
});

afterAll(async () => {
  await server.close();
});

describe("every transport and revision answers as recorded", () => {
  test("tools/call", async () => {
    expect(differences("tools-call.json", await onEveryConnection(server, CALLS))).toEqual([]);
  });

  test("all other methods", async () => {
    expect(differences("methods.json", await onEveryConnection(server, OTHER_METHODS))).toEqual([]);
  });

  test("requests with one wrong value", async () => {
    expect(
      differences("wrong-values.json", await onEveryConnection(server, BENT, { kinds: DIFFERENT_READERS })),
    ).toEqual([]);
  });

  test("ids, batches, notifications and what is no message", async () => {
    expect(differences("messages.json", await onEveryConnection(server, TEXTS))).toEqual([]);
  });

  test("log messages and progress", async () => {
    expect(differences("logging.json", await onEveryConnection(server, LOGGING))).toEqual([]);
  });

  test("headers and statuses", async () => {
    expect(differences("http.json", await overHttp(server))).toEqual([]);
  });
});

describe("every transport and revision talks as recorded", () => {
  test("handshakes", async () => {
    expect(differences("handshakes.json", await handshakes(server))).toEqual([]);
  });

  test("questions that are requests of the server", async () => {
    expect(differences("questions.json", await questions(server))).toEqual([]);
  });

  test("questions that stay open", async () => {
    expect(differences("open-questions.json", await openQuestions(server))).toEqual([]);
  });

  test("questions that are results", async () => {
    expect(differences("rounds.json", await rounds(server))).toEqual([]);
  });

  test("tasks", async () => {
    expect(differences("tasks.json", await tasks(server))).toEqual([]);
  });

  test("changes, for clients with a handshake", async () => {
    expect(differences("changes.json", await changes(server))).toEqual([]);
  });

  test("changes, for clients that listen", async () => {
    expect(differences("listening.json", await listening(server))).toEqual([]);
  });
});
