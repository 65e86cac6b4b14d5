"""Imports handler files from their texts, or from texts that the server keeps of broken files."""

from __future__ import annotations

import importlib.machinery
import os
from types import CodeType
from typing import Any, Dict, Mapping, Optional, Set


class Sources:
    """An import hook for the folders of handlers.

    Python takes compiled code for a file when second and size are those of the file: two saves in one second would
    leave the first one in service. And of a file that is broken now, the text of when it worked may be kept.
    """

    def __init__(self) -> None:
        self._folders: Set[str] = set()
        self._texts: Dict[str, str] = {}
        # Every finder makes loaders of this class.
        loader_class: Any = importlib.machinery.SourceFileLoader
        get_code = loader_class.get_code

        def code_of(loader: Any, name: str) -> Optional[CodeType]:
            text = self._text_of(loader.path)
            code: Optional[CodeType] = (
                get_code(loader, name) if text is None else loader.source_to_code(text, loader.path)
            )
            return code

        loader_class.get_code = code_of

    def __contains__(self, file: object) -> bool:
        return file in self._texts

    def serve(self, file: str) -> None:
        """Files beside and below this file may change while the worker runs."""
        self._folders.add(os.path.dirname(os.path.abspath(file)) + os.sep)

    def keep(self, texts: Mapping[str, str]) -> None:
        """From now on these texts are imported instead of the files."""
        self._texts.update(texts)

    def _text_of(self, path: str) -> Optional[bytes]:
        kept = self._texts.get(path)
        if kept is not None:
            return kept.encode("utf-8")
        # A virtualenv may be in the same folder, and has far too much in it to be compiled each time.
        is_edited = "site-packages" not in path and any(path.startswith(folder) for folder in self._folders)
        if not is_edited:
            return None
        with open(path, "rb") as file:
            return file.read()
