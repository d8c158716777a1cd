// What a window filter must know, kept in the plainest way: for every key the generation that last
// wrote it. Shares nothing with the filters that are held against it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "sluice/hash/digest.hpp"

namespace sluice::testing_support {

class WindowReference {
 public:
  // A key is held in the generation that wrote it and in `generations` more.
  explicit WindowReference(std::int64_t generations) : generations_(generations) {}

  void rotate();
  void write(const Digest& key, std::int64_t age = 0);  // keeps the later of two times
  std::optional<std::int64_t> age_of(const Digest& key) const;
  bool holds(const Digest& key) const { return age_of(key).has_value(); }
  std::size_t size() const { return last_.size(); }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  std::int64_t generations_;
  std::int64_t now_ = 0;
  std::map<Key, std::int64_t> last_;
  std::deque<std::deque<Key>> written_ = {{}};  // by generation, the present one last
};

}  // namespace sluice::testing_support
