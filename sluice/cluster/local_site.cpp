#include "sluice/cluster/local_site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>

#include "sluice/base/error.hpp"

namespace sluice::cluster {

std::uint64_t CellTable::used() const noexcept {
  std::uint64_t count = 0;
  for (const std::uint64_t word : words_) {
    if (bits_ == 1) count += static_cast<unsigned>(std::popcount(word));
    for (unsigned shift = 0; bits_ > 1 && shift < 64; shift += bits_)
      count += (word >> shift & mask()) != 0;
  }
  return count;
}

LocalMemory::LocalMemory(std::uint64_t cells, unsigned cell_bits)
    : cells_(cells), cell_bits_(cell_bits) {
  if (cell_bits != 1 && cell_bits != 16 && cell_bits != 32)
    throw BadParameters(fmt::format("a site: cells of {} bits; give 1, 16 or 32", cell_bits));
}

LocalMemory::Page& LocalMemory::page(std::int64_t number) {
  const auto found = pages_.find(number);
  if (found != pages_.end()) return found->second;
  return pages_.emplace(number, Page{CellTable(cells_, cell_bits_), ++incarnations_}).first->second;
}

Reply LocalMemory::carry_out(std::int64_t number, const Request& request,
                             std::span<std::uint32_t> answers, const void* producer) {
  const std::lock_guard lock(mutex_);
  if (!reachable_) return {Outcome::failed, 0};
  Page& to = page(number);
  if (request.keep.count() > 0) to.until = now_ + request.keep;
  carry_out(to, request, answers, producer);
  return {late_ ? Outcome::late : Outcome::answered, to.incarnation};
}

void LocalMemory::carry_out(Page& page, const Request& request, std::span<std::uint32_t> answers,
                            const void* producer) {
  const auto value = [&](std::size_t i) {
    return request.values.empty() ? std::uint32_t{1} : request.values[i];
  };
  for (std::size_t i = 0; i < request.positions.size(); ++i) {
    const std::uint64_t at = request.positions[i];
    const bool names = request.verb == Verb::claim || request.verb == Verb::release;
    assert((names || at < cells_) && "position off the site");
    static_cast<void>(names);
    switch (request.verb) {
      case Verb::test:
        answers[i] = page.cells.get(at);
        break;
      case Verb::set:
        page.cells.put(at, value(i));
        break;
      case Verb::test_and_set:
        answers[i] = page.cells.get(at);
        page.cells.put(at, value(i));
        break;
      case Verb::claim:
        answers[i] = !claims_.emplace(at, producer).second;
        break;
      case Verb::release:
        const auto held = claims_.find(at);
        answers[i] = held != claims_.end() && held->second == producer;
        if (answers[i] != 0) claims_.erase(held);
        break;
    }
  }
}

void LocalMemory::fail() {
  const std::lock_guard lock(mutex_);
  reachable_ = false;
}

void LocalMemory::come_back() {
  const std::lock_guard lock(mutex_);
  reachable_ = true;
}

void LocalMemory::come_back_empty() {
  const std::lock_guard lock(mutex_);
  reachable_ = true;
  pages_.clear();
  claims_.clear();
}

void LocalMemory::be_late(bool late) {
  const std::lock_guard lock(mutex_);
  late_ = late;
}

void LocalMemory::drop_claims() {
  const std::lock_guard lock(mutex_);
  claims_.clear();
}

void LocalMemory::lose(std::int64_t page) {
  const std::lock_guard lock(mutex_);
  pages_.erase(page);
}

void LocalMemory::pass(std::chrono::milliseconds time) {
  const std::lock_guard lock(mutex_);
  now_ += time;
  std::erase_if(
      pages_, [&](const auto& entry) { return entry.second.until && *entry.second.until <= now_; });
}

std::uint64_t LocalMemory::set_bits() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  for (const auto& [number, page] : pages_) count += page.cells.used();
  return count;
}

std::vector<std::int64_t> LocalMemory::pages() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::int64_t> numbers;
  for (const auto& [number, page] : pages_) numbers.push_back(number);
  return numbers;
}

void LocalSite::send(const Request& request) {
  answers_.resize(request.positions.size());
  reply_ = memory_->carry_out(page_, request, answers_, producer_);
}

Reply LocalSite::receive(std::span<std::uint32_t> answers) {
  if (reply_.answered())
    std::copy_n(answers_.begin(), std::min(answers.size(), answers_.size()), answers.begin());
  return reply_;
}

std::vector<std::shared_ptr<LocalMemory>> local_memories(std::size_t count, std::uint64_t cells,
                                                         unsigned cell_bits) {
  std::vector<std::shared_ptr<LocalMemory>> memories;
  for (std::size_t i = 0; i < count; ++i)
    memories.push_back(std::make_shared<LocalMemory>(cells, cell_bits));
  return memories;
}

std::vector<std::unique_ptr<Site>> connect(std::span<const std::shared_ptr<LocalMemory>> memories) {
  std::vector<std::unique_ptr<Site>> sites;
  for (const auto& memory : memories) sites.push_back(std::make_unique<LocalSite>(memory));
  return sites;
}

std::vector<std::unique_ptr<Pages>> connect_pages(
    std::span<const std::shared_ptr<LocalMemory>> memories) {
  std::vector<std::unique_ptr<Pages>> pages;
  for (const auto& memory : memories) pages.push_back(std::make_unique<LocalPages>(memory));
  return pages;
}

}  // namespace sluice::cluster
