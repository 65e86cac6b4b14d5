import { defineMountedFolderSuite } from "./mounted-folders-suite.ts";
import { bubblewrap } from "./test-runtime.ts";

defineMountedFolderSuite(bubblewrap("root", () => undefined));
