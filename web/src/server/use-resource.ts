import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, type Query, queryText } from "./api.ts";

export interface Resource<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** Loads a resource. The last answer stays visible while the next one loads, so that the layout does not shift. */
export function useResource<T>(path: string | undefined, query: Query = {}): Resource<T> {
  const [state, setState] = useState<{ data: T | undefined; error: unknown; isLoading: boolean }>({
    data: undefined,
    error: undefined,
    isLoading: path !== undefined,
  });
  const [round, setRound] = useState(0);
  const shownPath = useRef(path);
  const text = queryText(query);
  useEffect(() => {
    if (path === undefined) return;
    const abort = new AbortController();
    const isOther = shownPath.current !== path;
    shownPath.current = path;
    setState((last) => ({ data: isOther ? undefined : last.data, error: last.error, isLoading: true }));
    get<T>(path, query, abort.signal).then(
      (data) => setState({ data, error: undefined, isLoading: false }),
      (error: unknown) => {
        if (!abort.signal.aborted) setState((last) => ({ data: last.data, error, isLoading: false }));
      },
    );
    return () => abort.abort();
    // `text` replaces the query object, which is new in each render.
  }, [path, text, round]);
  const reload = useCallback(() => setRound((last) => last + 1), []);
  return { ...state, reload };
}
