// The layout of a filter over many sites: what its slices are and where they stand. Producers read
// it when they open the filter, so that all of them cut it, hash keys and wait for windows alike.
//
// A layout has an identity, which stays for as long as the filter lives, and a version, which rises
// with each change. What may change is where slices stand. All else stays: keys would be asked for
// at other slices, or under other digests, and be taken for new ones.
//
// Format   encode() and decode_layout(): a magic, the number of the format, the length of what
//          follows, fields, and a checksum. Bytes from outside are hostile: each field is checked
//          before anybody trusts it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/cluster/slice_map.hpp"
#include "sluice/filters/window_contract.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/window/spec.hpp"

namespace sluice::cluster {

// The bytes are not a complete, undamaged layout that this build can read.
class CorruptLayout : public Error {
 public:
  using Error::Error;
};

struct Layout {
  // The numbers of the enums are part of the format.
  enum class Kind : std::uint8_t {
    filters = 1,  // a whole filter or window per site: FilterSlices
    cells = 2,    // bits that filters reach by position: Slices
  };
  struct Slice {
    // Which of the names that it could have (a hash tag ends with it): it decides on which server
    // it is.
    std::uint32_t turn = 0;
    // The version of the layout in which it came there.
    std::uint64_t placed = 1;
    // What it had when it was made: another one says that it has lost its contents since. 0: not
    // known.
    std::uint64_t incarnation = 0;
    friend bool operator==(const Slice&, const Slice&) = default;
  };
  // A slice that is on its way: until it is there nobody asks it.
  struct Move {
    std::uint32_t site = 0;
    std::uint32_t turn = 0;  // where it goes
    friend bool operator==(const Move&, const Move&) = default;
  };

  static constexpr std::uint16_t kFormat = 1;
  // Of a layout with the most sites.
  static constexpr std::size_t kMostBytes = std::size_t{2} << 20;
  static constexpr std::size_t kMostWords = 64, kMostWordBytes = 4096;
  static constexpr unsigned kMostServers = 1000;

  Kind kind = Kind::filters;
  // The filter is gone, and this says so to producers that have not noticed yet.
  bool dropped = false;
  std::uint64_t identity = 0;
  std::uint64_t version = 1;
  // In ms since 1970: when the filter was made, and when this version was.
  std::int64_t made_ms = 0, changed_ms = 0;
  // Servers that know nothing of each other; 0: a cluster. Slices are shared out by their number.
  unsigned servers = 0;

  HashKind hash = HashKind::highway;
  Secret secret = Secret::random();

  // Filter slices: `slices` of them, horizontal, and the rest as it is.
  SliceParams slicing = {.slicing = Slicing::horizontal};
  // What a slice remembers. No window: everything.
  std::optional<WindowSpec> window = {};
  Anchor anchor = Anchor::delivered;
  double slack = 0;  // how far past the window a key may be remembered, as a share of it
  // Of the whole filter, as it was planned. 0: not said.
  double fpr = 0, rate = 0;
  std::uint64_t expect = 0;
  // What makes a filter slice: words of SLUICE.RESERVE after the key.
  std::vector<std::string> words = {};

  std::vector<Slice> slices = {};  // one per site
  std::optional<Move> move = {};

  std::uint32_t sites() const noexcept { return static_cast<std::uint32_t>(slices.size()); }
  // Throws BadParameters, with what is wrong and what would be right.
  void check() const;
  // What may not change between two versions of one filter is the same.
  bool same_filter(const Layout& other) const;
  // The next version: its changes are yet to be made.
  Layout next(std::int64_t now_ms) const;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// Both are read with reason: a kind is "filter slices" or "cell slices".
std::string_view name_of(Layout::Kind kind) noexcept;
// "the last 10 minutes", "forever": as servers say it.
std::string window_text(const Layout& layout);

// The layout must pass its check().
std::string encode(const Layout& layout);
// Throws CorruptLayout.
Layout decode_layout(std::string_view bytes);

}  // namespace sluice::cluster
