// The keys that BF commands make.
//
// Such a key is a series of Bloom filters (filters/dynamic): each holds EXPANSION times the items of the one
// before at half its error, so that the error that was asked for holds for any number of items. With
// NONSCALING it is one Bloom filter. Its bits are not in blocks: who comes from RedisBloom takes no more
// memory than there. BF commands can use keys of other commands too: all of them grow, or are used beyond
// what they were planned for.
#pragma once

#include <cstdint>

#include "apps/redis/entry.hpp"
#include "apps/redis/host.hpp"

namespace sluice::server {

// What RedisBloom makes if it is told nothing.
struct BfWanted {
  double error = 0.01;
  std::uint64_t capacity = 100;
  std::int64_t expansion = 2;
  bool nonscaling = false;
};

// Makes the key that is word 1 of the command. Throws BadParameters: the texts begin with those of
// RedisBloom.
void make_bf(Host& host, Place& place, const BfWanted& wanted);

// What BF.INFO shows.
struct BfNumbers {
  std::uint64_t capacity = 0, filters = 1, items = 0;
};
BfNumbers bf_numbers(const Entry& entry);

// New items that fit into the filters that there are; the largest number for keys of other commands.
std::uint64_t bf_room(const Entry& entry);
// Whether it may add a filter: it is not NONSCALING, and the server has room for the next one. Only for keys
// of BF commands.
bool bf_may_grow(Host& host, const Entry& entry);

}  // namespace sluice::server
