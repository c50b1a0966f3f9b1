// A warp of 32 threads on a CPU: what segments.cuh uses of CUDA, each intrinsic a meeting of all lanes.
#pragma once

#include <algorithm>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#define __host__
#define __device__
#define __forceinline__ inline

namespace warp {

inline std::barrier<> meeting(32);
inline int brought[32];
inline thread_local int lane;

template <typename F>
int meet(int mine, F answer) {
  brought[lane] = mine;
  meeting.arrive_and_wait();
  const int result = answer();
  meeting.arrive_and_wait();
  return result;
}

inline void run(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 32; ++i) threads.emplace_back([&body, i] { lane = i, body(i); });
  for (auto& t : threads) t.join();
}

}  // namespace warp

using std::max;
using std::min;

inline int __shfl_sync(unsigned, int x, int from) {
  return warp::meet(x, [=] { return warp::brought[from & 31]; });
}
inline int __shfl_up_sync(unsigned, int x, int by) {
  return warp::meet(x, [=] { return warp::brought[warp::lane >= by ? warp::lane - by : warp::lane]; });
}
inline unsigned __ballot_sync(unsigned, bool x) {
  return warp::meet(x, [] {
    unsigned all = 0;
    for (int i = 0; i < 32; ++i) all |= static_cast<unsigned>(warp::brought[i] != 0) << i;
    return static_cast<int>(all);
  });
}
inline int __reduce_add_sync(unsigned, int x) {
  return warp::meet(x, [] {
    int sum = 0;
    for (int y : warp::brought) sum += y;
    return sum;
  });
}
inline int __reduce_max_sync(unsigned, int x) {
  return warp::meet(x, [] { return *std::max_element(warp::brought, warp::brought + 32); });
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
