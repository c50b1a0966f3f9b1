"""``vllm bench serve`` of the tree on PYTHONPATH: ``python bench.py ARGUMENTS``.

The console script wants the metadata of a distribution called vllm, which the CPU build does not have.
"""

from vllm.benchmarks.serve import add_cli_args, main
from vllm.utils.argparse_utils import FlexibleArgumentParser

if __name__ == "__main__":
    parser = FlexibleArgumentParser()
    add_cli_args(parser)
    main(parser.parse_args())
