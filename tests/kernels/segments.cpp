// Reads batches, one a line: slots, least length, then 32 lengths in units. Writes for each the segment of every slot, as
// "slot request index count first units begin end", and a dot.
#include "warp.hpp"

#include "segments.cuh"

#include <cstdio>

int main() {
  for (int slots, least; std::scanf("%d %d", &slots, &least) == 2;) {
    int units[32];
    for (int& u : units)
      if (std::scanf("%d", &u) != 1) return 1;
    warp::run([&](int lane) {
      for (int slot = 0; slot < slots; ++slot) {
        verify_attention::Segment s;
        if (!verify_attention::find_segment(units[lane], slot, slots, least, lane, s)) continue;
        // Every lane has to know the same segment: the last one tells.
        if (lane == 31)
          std::printf("%d %d %d %d %d %d %d %d\n", slot, s.request, s.index, s.count, s.first, s.units,
                      verify_attention::share(s.units, s.index, s.count), verify_attention::share(s.units, s.index + 1, s.count));
      }
    });
    std::printf(".\n");
  }
}
