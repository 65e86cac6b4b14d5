import { isExtractRequest } from "./extracted-file.ts";
import { extractFiles } from "./extract-files.ts";

// The entry of the child process: one request, one answer, gone.
process.once("message", (request: unknown) => {
  const answer = extractFiles(isExtractRequest(request) ? request.files : []);
  process.send?.(answer, () => process.disconnect());
});
process.once("disconnect", () => process.exit());
