// Sites within this process: for one machine with many threads, for simulations of many machines,
// and for tests, which make them fail.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sluice/cluster/site.hpp"

namespace sluice::cluster {

// Cells of 1, 16 or 32 bits, in as many words as they need.
class CellTable {
 public:
  CellTable(std::uint64_t cells, unsigned bits) : bits_(bits), words_((cells * bits + 63) / 64) {}

  std::uint32_t get(std::uint64_t at) const noexcept {
    return static_cast<std::uint32_t>(words_[at * bits_ / 64] >> (at * bits_ % 64) & mask());
  }
  void put(std::uint64_t at, std::uint32_t value) noexcept {
    std::uint64_t& word = words_[at * bits_ / 64];
    const unsigned shift = static_cast<unsigned>(at * bits_ % 64);
    word = (word & ~(mask() << shift)) | (value & mask()) << shift;
  }
  // Cells that are not 0.
  std::uint64_t used() const noexcept;

 private:
  std::uint64_t mask() const noexcept { return (std::uint64_t{1} << bits_) - 1; }

  unsigned bits_;
  std::vector<std::uint64_t> words_;
};

// The state that producers share, with all its pages. A site without pages is page 0, which nobody
// asks to keep, and which stays. Any thread may use it.
class LocalMemory {
 public:
  // `cells` per page. Throws BadParameters for other cells than of 1, 16 or 32 bits.
  explicit LocalMemory(std::uint64_t cells, unsigned cell_bits = 1);

  std::uint64_t cells() const noexcept { return cells_; }
  unsigned cell_bits() const noexcept { return cell_bits_; }
  // `producer` is the caller: claims belong to it.
  Reply carry_out(std::int64_t page, const Request& request, std::span<std::uint32_t> answers,
                  const void* producer);

  // Makes it unreachable from now on, with or without losing its contents.
  void fail();
  void come_back();
  void come_back_empty();
  // Makes it carry out requests, but too late for the caller to get the answer.
  void be_late(bool late);
  // Drops the claims of producers that are gone. Servers let them expire.
  void drop_claims();
  // As if a server had evicted the page.
  void lose(std::int64_t page);
  // So much time goes by; no other does. Pages that nobody asked to keep for longer go.
  void pass(std::chrono::milliseconds time);

  // Cells that are not 0, of all pages.
  std::uint64_t set_bits() const;
  std::vector<std::int64_t> pages() const;

 private:
  struct Page {
    CellTable cells;
    std::uint64_t incarnation;
    std::optional<std::chrono::milliseconds> until = {};
  };
  Page& page(std::int64_t number);
  void carry_out(Page& page, const Request& request, std::span<std::uint32_t> answers,
                 const void* producer);

  mutable std::mutex mutex_;
  std::uint64_t cells_;
  unsigned cell_bits_;
  std::map<std::int64_t, Page> pages_;
  std::unordered_map<std::uint64_t, const void*> claims_;  // and who holds them
  std::uint64_t incarnations_ = 0;                         // so far
  std::chrono::milliseconds now_{0};
  bool reachable_ = true;
  bool late_ = false;
};

class LocalSite final : public Site {
 public:
  // `producer` holds the claims; null: this object.
  explicit LocalSite(std::shared_ptr<LocalMemory> memory, std::int64_t page = 0,
                     const void* producer = nullptr)
      : memory_(std::move(memory)), page_(page), producer_(producer ? producer : this) {}

  std::uint64_t cells() const override { return memory_->cells(); }
  unsigned cell_bits() const override { return memory_->cell_bits(); }
  void send(const Request& request) override;
  Reply receive(std::span<std::uint32_t> answers) override;

 private:
  std::shared_ptr<LocalMemory> memory_;
  std::int64_t page_;
  const void* producer_;
  Reply reply_;
  std::vector<std::uint32_t> answers_;
};

class LocalPages final : public Pages {
 public:
  explicit LocalPages(std::shared_ptr<LocalMemory> memory) : memory_(std::move(memory)) {}

  std::uint64_t cells() const override { return memory_->cells(); }
  unsigned cell_bits() const override { return memory_->cell_bits(); }
  std::unique_ptr<Site> open(std::int64_t number) override {
    return std::make_unique<LocalSite>(memory_, number, this);
  }

 private:
  std::shared_ptr<LocalMemory> memory_;
};

// `count` empty ones.
std::vector<std::shared_ptr<LocalMemory>> local_memories(std::size_t count, std::uint64_t cells,
                                                         unsigned cell_bits = 1);

// A producer's connections to them.
std::vector<std::unique_ptr<Site>> connect(std::span<const std::shared_ptr<LocalMemory>> memories);
std::vector<std::unique_ptr<Pages>> connect_pages(
    std::span<const std::shared_ptr<LocalMemory>> memories);

}  // namespace sluice::cluster
