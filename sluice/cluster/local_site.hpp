// Sites within this process: for one machine with many threads, for simulations of many machines,
// and for tests, which make them fail.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sluice/cluster/site.hpp"

namespace sluice::cluster {

// The state that producers share. Any thread may use it.
class LocalMemory {
 public:
  explicit LocalMemory(std::uint64_t bits) : bits_(bits), words_((bits + 63) / 64) {}

  std::uint64_t bits() const noexcept { return bits_; }
  // `producer` is the caller: claims belong to it.
  Reply carry_out(Verb verb, std::span<const std::uint64_t> positions,
                  std::span<std::uint8_t> answers, const void* producer);

  // Makes it unreachable from now on, with or without losing its contents.
  void fail();
  void come_back();
  void come_back_empty();
  // Makes it carry out requests, but too late for the caller to get the answer.
  void be_late(bool late);
  // Drops the claims of producers that are gone. Servers let them expire.
  void drop_claims();

  std::uint64_t set_bits() const;

 private:
  bool test(std::uint64_t position) const noexcept {
    return (words_[position / 64] >> (position % 64) & 1) != 0;
  }
  void set(std::uint64_t position) noexcept {
    words_[position / 64] |= std::uint64_t{1} << (position % 64);
  }

  mutable std::mutex mutex_;
  std::uint64_t bits_;
  std::vector<std::uint64_t> words_;
  std::unordered_map<std::uint64_t, const void*> claims_;  // and who holds them
  std::uint64_t incarnation_ = 1;
  bool reachable_ = true;
  bool late_ = false;
};

class LocalSite final : public Site {
 public:
  explicit LocalSite(std::shared_ptr<LocalMemory> memory) : memory_(std::move(memory)) {}

  std::uint64_t bits() const override { return memory_->bits(); }
  void send(Verb verb, std::span<const std::uint64_t> positions) override;
  Reply receive(std::span<std::uint8_t> answers) override;

 private:
  std::shared_ptr<LocalMemory> memory_;
  Reply reply_;
  std::vector<std::uint8_t> answers_;
};

// `count` empty ones.
std::vector<std::shared_ptr<LocalMemory>> local_memories(std::size_t count, std::uint64_t bits);

// A producer's connections to them.
std::vector<std::unique_ptr<Site>> connect(std::span<const std::shared_ptr<LocalMemory>> memories);

}  // namespace sluice::cluster
