"""A matplotlib backend that draws into the result of the run."""

import sys

from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

_pictures = sys.modules["__owlclaw_pictures__"]


class FigureManager(FigureManagerBase):
    @classmethod
    def pyplot_show(cls, *args, **kwargs):
        _pictures.show_open_figures()

    def show(self):
        _pictures.remember_saved(self.canvas.figure)


class FigureCanvas(FigureCanvasAgg):
    manager_class = FigureManager

    def print_figure(self, *args, **kwargs):
        result = super().print_figure(*args, **kwargs)
        _pictures.remember_saved(self.figure)
        return result

    def draw_to(self, file):
        super().print_figure(file, format="png")


def show(*args, **kwargs):
    _pictures.show_open_figures()
