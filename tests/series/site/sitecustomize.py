"""Lets torchvision's Python be imported beside a CPU build of torch: two of its operators are declared when it is asked for."""

import sys
from importlib.abc import MetaPathFinder


class _Declare(MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            import torch

            library = torch.library.Library("torchvision", "FRAGMENT")
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            self.library = library
            sys.modules["_torchvision_operators"] = self  # kept alive: a library's operators go with it
        return


sys.meta_path.insert(0, _Declare())
