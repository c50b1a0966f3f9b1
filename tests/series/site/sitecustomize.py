"""Lets torchvision's Python be imported beside a CPU build of torch: two of its operators are declared when it is asked for.

It is asked for before vLLM chooses an attention for the CPU, so that AMX is denied here, too: the release's attention with AMX ends
in an illegal instruction on some virtual machines, pristine as well, and the other path is the one that every x86 has.
"""

import sys
from importlib.abc import MetaPathFinder


class _Declare(MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            import torch

            torch.cpu._is_amx_tile_supported = lambda: False
            library = torch.library.Library("torchvision", "FRAGMENT")
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            self.library = library
            sys.modules["_torchvision_operators"] = self  # kept alive: a library's operators go with it
        return


sys.meta_path.insert(0, _Declare())
