"""What Python code draws, for the result of its run: matplotlib figures and PIL images."""

import base64
import io
import os
import sys

PICTURES_MAX = 20
PICTURE_BYTES_MAX = 4 * 1024 * 1024
LEFT_OUT_NOTE = (
    "[%d %s left out: a result takes 20 pictures with 4 MiB together; make them smaller, or save them to a file]"
)
HERE = os.path.dirname(os.path.abspath(__file__))


class Pictures:
    """What the code drew during one run."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.found = []
        self.saved_figures = []
        self.byte_count = 0
        self.left_out = 0

    def take(self):
        if self.left_out:
            noun = "picture was" if self.left_out == 1 else "pictures were"
            print(LEFT_OUT_NOTE % (self.left_out, noun), file=sys.stderr)
        found = self.found
        self.clear()
        return found

    def add_png(self, png):
        if len(self.found) >= PICTURES_MAX or self.byte_count + len(png) > PICTURE_BYTES_MAX:
            self.left_out += 1
            return
        self.byte_count += len(png)
        self.found.append({"mimeType": "image/png", "data": base64.b64encode(png).decode()})

    def add_value(self, value):
        """Whether the value is a picture itself."""
        image_module = sys.modules.get("PIL.Image")
        if image_module is not None and isinstance(value, image_module.Image):
            self.add_image(value)
            return True
        figure_module = sys.modules.get("matplotlib.figure")
        if figure_module is not None and isinstance(value, figure_module.Figure):
            if value not in self.saved_figures:
                self.saved_figures.append(value)
            return True
        return False

    def add_image(self, image):
        buffer = io.BytesIO()
        if image.mode not in ("1", "L", "LA", "I", "P", "RGB", "RGBA"):
            image = image.convert("RGBA" if "A" in image.mode else "RGB")
        image.save(buffer, "PNG")
        self.add_png(buffer.getvalue())

    def add_figure(self, figure):
        buffer = io.BytesIO()
        # The canvas's own method would count this as one of the code's savefig calls.
        figure.canvas.draw_to(buffer) if hasattr(figure.canvas, "draw_to") else figure.savefig(buffer, format="png")
        self.add_png(buffer.getvalue())

    def remember_saved(self, figure):
        if figure not in self.saved_figures and len(self.saved_figures) < PICTURES_MAX:
            self.saved_figures.append(figure)

    def show_open_figures(self):
        pyplot = sys.modules["matplotlib.pyplot"]
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if figure in self.saved_figures:
                self.saved_figures.remove(figure)
            self.add_figure(figure)
        pyplot.close("all")

    def add_open_figures(self):
        saved = self.saved_figures
        pyplot = sys.modules.get("matplotlib.pyplot")
        is_ready = pyplot is not None and hasattr(pyplot, "get_fignums")
        drawn = [figure for figure in map(pyplot.figure, pyplot.get_fignums())] if is_ready else []
        for figure in saved:
            if figure not in drawn:
                self.add_figure(figure)
        self.saved_figures = []
        if drawn:
            self.show_open_figures()


def install_import_hooks(pictures):
    sys.modules["__owlclaw_pictures__"] = pictures
    os.environ.setdefault("MPLBACKEND", "module://owlclaw_matplotlib")
    sys.meta_path.insert(0, PictureHooks())


class PictureHooks:
    """Finds our drawing backend, and lets `Image.show()` show in the result."""

    def find_spec(self, name, path=None, target=None):
        if name == "owlclaw_matplotlib":
            from importlib.util import spec_from_file_location

            return spec_from_file_location(name, os.path.join(HERE, "owlclaw_matplotlib.py"))
        if name != "PIL.ImageShow":
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = add_viewer_after(spec.loader.exec_module)
        return spec


def add_viewer_after(exec_module):
    def exec_and_add(module):
        exec_module(module)

        class ResultViewer(module.Viewer):
            def show(self, image, **options):
                sys.modules["__owlclaw_pictures__"].add_image(image)
                return 1

        module.register(ResultViewer(), 0)

    return exec_and_add
