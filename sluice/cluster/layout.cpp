#include "sluice/cluster/layout.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sluice/base/codec.hpp"
#include "sluice/base/quantity.hpp"

namespace sluice::cluster {
namespace {

constexpr std::string_view kMagic = "sluicelay";
constexpr std::size_t kBeforeFields = kMagic.size() + 2 + 4, kChecksum = 8;
constexpr std::uint8_t kNoWindow = 0;

// Times are within 146 years of 1970, as those of events.
constexpr std::int64_t kFarthestMs = 4'611'686'018'427;

std::uint64_t checksum(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

[[noreturn]] void refuse(const std::string& what) {
  throw BadParameters("layout: " + what);
}

void check_window(const Layout& layout) {
  if (!(layout.slack >= 0 && layout.slack <= 1))
    refuse(fmt::format("a `slack` of {}; give a share of the window, 0 to 1", layout.slack));
  if (!layout.window) {
    if (layout.anchor != Anchor::delivered) refuse("`refresh` without a `window`; give one");
    return;
  }
  const WindowSpec& window = *layout.window;
  if (window.size == 0 || window.size > kLongestWindow)
    refuse(fmt::format("a `window` of {}; give one of 1 ns to 73 years, or up to 2^61 records",
                       window.size));
  if (layout.kind == Layout::Kind::filters && !window.by_time() && layout.sites() > 1)
    refuse(fmt::format(
        "a `window` of a count over {} sites: each would count only its own part of the stream; "
        "give a `window` of time, or one site",
        layout.sites()));
}

void check_words(const std::vector<std::string>& words) {
  if (words.size() > Layout::kMostWords)
    refuse(
        fmt::format("{} words for the server; give at most {}", words.size(), Layout::kMostWords));
  for (const std::string& word : words)
    if (word.empty() || word.size() > Layout::kMostWordBytes)
      refuse(fmt::format("a word of {} bytes for the server; give 1 to {}", word.size(),
                         Layout::kMostWordBytes));
}

void check_slices(const Layout& layout) {
  if (layout.slices.empty() || layout.slices.size() > SliceMap::kMostSites)
    refuse(fmt::format("{} sites; give 1 to {}", layout.slices.size(), SliceMap::kMostSites));
  const SliceParams& cut = layout.slicing;
  if (layout.kind == Layout::Kind::cells) {
    const SliceMap map(cut);
    if (map.sites() != layout.sites())
      refuse(fmt::format("{} slices where the slicing has {}", layout.sites(), map.sites()));
    if (!layout.words.empty()) refuse("words for the server, which cell slices do not take");
  } else if (cut != SliceParams{.slicing = Slicing::horizontal, .slices = layout.sites()}) {
    refuse("filter slices are cut horizontally, one per site");
  }
  for (const Layout::Slice& slice : layout.slices)
    if (slice.placed == 0 || slice.placed > layout.version)
      refuse(fmt::format("a slice of version {} in version {}", slice.placed, layout.version));
  if (layout.move && layout.move->site >= layout.sites())
    refuse(fmt::format("slice {} of {} is on its way", layout.move->site, layout.sites()));
}

// --- writing

void put(std::string_view bytes, Encoder& to) {
  to.bytes(std::as_bytes(std::span(bytes)));
}

void put_fields(const Layout& layout, Encoder& to) {
  to.u8(static_cast<std::uint8_t>(layout.kind));
  to.u8(layout.dropped ? 1 : 0);
  to.u64(layout.identity);
  to.u64(layout.version);
  to.u64(static_cast<std::uint64_t>(layout.made_ms));
  to.u64(static_cast<std::uint64_t>(layout.changed_ms));
  to.varint(layout.servers);
  to.u8(static_cast<std::uint8_t>(layout.hash));
  to.bytes(layout.secret.bytes());
  to.u8(static_cast<std::uint8_t>(layout.slicing.slicing));
  to.varint(layout.slicing.bits);
  to.varint(layout.slicing.probes);
  to.varint(layout.slicing.slices);
  to.varint(layout.slicing.inner);
  to.varint(layout.slicing.slices_per_key);
  to.u8(layout.window ? static_cast<std::uint8_t>(layout.window->kind) : kNoWindow);
  if (layout.window) to.u64(layout.window->size);
  to.u8(static_cast<std::uint8_t>(layout.anchor));
  to.f64(layout.slack);
  to.f64(layout.fpr);
  to.f64(layout.rate);
  to.u64(layout.expect);
  to.varint(layout.words.size());
  for (const std::string& word : layout.words) {
    to.varint(word.size());
    put(word, to);
  }
  to.varint(layout.slices.size());
  for (const Layout::Slice& slice : layout.slices) {
    to.varint(slice.turn);
    to.varint(slice.placed);
    to.u64(slice.incarnation);
  }
  to.u8(layout.move ? 1 : 0);
  if (!layout.move) return;
  to.varint(layout.move->site);
  to.varint(layout.move->turn);
}

// --- reading

[[noreturn]] void corrupt(const std::string& what) {
  throw CorruptLayout("this is not a layout of a filter that this sluice can read: " + what);
}

std::uint64_t limited(Decoder& from, std::uint64_t most, const char* what) {
  const std::uint64_t value = from.varint();
  if (value > most) corrupt(fmt::format("{} of {}, where {} is the most", what, value, most));
  return value;
}

// Of an enum or a flag.
std::uint8_t numbered(Decoder& from, unsigned first, unsigned last, const char* what) {
  const std::uint8_t value = from.u8();
  if (value < first || value > last) corrupt(fmt::format("there is no {} {}", what, value));
  return value;
}

std::uint32_t number32(Decoder& from, const char* what) {
  return static_cast<std::uint32_t>(limited(from, 0xffff'ffff, what));
}

std::int64_t time_ms(Decoder& from) {
  const auto value = static_cast<std::int64_t>(from.u64());
  if (value < -kFarthestMs || value > kFarthestMs)
    corrupt(fmt::format("a time of {} ms since 1970", value));
  return value;
}

double share(Decoder& from, double most, const char* what) {
  const double value = from.f64();
  if (!(value >= 0 && value <= most)) corrupt(fmt::format("{} of {}", what, value));
  return value;
}

void take_slicing(Decoder& from, Layout& layout) {
  layout.slicing.slicing =
      static_cast<Slicing>(numbered(from, 0, static_cast<unsigned>(Slicing::general), "slicing"));
  layout.slicing.bits = from.varint();
  layout.slicing.probes = number32(from, "probes");
  layout.slicing.slices = number32(from, "slices");
  layout.slicing.inner = number32(from, "inner slices");
  layout.slicing.slices_per_key = number32(from, "slices per key");
}

void take_window(Decoder& from, Layout& layout) {
  const std::uint8_t kind = numbered(
      from, kNoWindow, static_cast<unsigned>(WindowSpec::Kind::landmark), "kind of window");
  if (kind != kNoWindow)
    layout.window = WindowSpec{static_cast<WindowSpec::Kind>(kind), from.u64()};
  layout.anchor =
      static_cast<Anchor>(numbered(from, 0, static_cast<unsigned>(Anchor::refreshed), "anchor"));
  layout.slack = share(from, 1, "a slack");
}

// Lengths are compared with what there is before anything is allocated.
void take_words(Decoder& from, Layout& layout) {
  const std::uint64_t count = limited(from, Layout::kMostWords, "words");
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t size = limited(
        from, std::min<std::uint64_t>(Layout::kMostWordBytes, from.remaining()), "a word's length");
    std::string& word = layout.words.emplace_back(size, '\0');
    from.bytes(std::as_writable_bytes(std::span(word)));
  }
}

void take_slices(Decoder& from, Layout& layout) {
  constexpr std::uint64_t kLeastBytes = 1 + 1 + 8;
  const std::uint64_t count =
      limited(from, std::min<std::uint64_t>(SliceMap::kMostSites, from.remaining() / kLeastBytes),
              "slices");
  layout.slices.resize(count);
  for (Layout::Slice& slice : layout.slices) {
    slice.turn = number32(from, "a slice's number");
    slice.placed = from.varint();
    slice.incarnation = from.u64();
  }
  if (numbered(from, 0, 1, "state of a move") == 0) return;
  layout.move = Layout::Move{number32(from, "a site"), number32(from, "a slice's number")};
}

Layout take_fields(Decoder& from) {
  Layout layout;
  layout.kind = static_cast<Layout::Kind>(numbered(from, 1, 2, "kind"));
  layout.dropped = numbered(from, 0, 1, "state") == 1;
  layout.identity = from.u64();
  layout.version = from.u64();
  if (layout.version == 0) corrupt("its version is 0");
  layout.made_ms = time_ms(from);
  layout.changed_ms = time_ms(from);
  layout.servers = static_cast<unsigned>(limited(from, Layout::kMostServers, "servers"));
  layout.hash = static_cast<HashKind>(numbered(from, 1, 2, "hash"));
  std::array<std::byte, Secret::kBytes> secret;
  from.bytes(secret);
  layout.secret = Secret::from_bytes(secret);
  take_slicing(from, layout);
  take_window(from, layout);
  layout.fpr = share(from, 1, "an error");
  layout.rate = share(from, 1e18, "a rate");
  layout.expect = from.u64();
  take_words(from, layout);
  take_slices(from, layout);
  from.expect_remaining(0, "its fields");
  return layout;
}

}  // namespace

void Layout::check() const {
  if (version == 0) refuse("version 0; the first is 1");
  if (servers > kMostServers)
    refuse(fmt::format("{} servers; give at most {}", servers, kMostServers));
  if (!(fpr >= 0 && fpr < 1)) refuse(fmt::format("an `fpr` of {}; give 0 to 1", fpr));
  if (!(rate >= 0 && rate <= 1e18)) refuse(fmt::format("a `rate` of {}", rate));
  check_words(words);
  check_slices(*this);
  check_window(*this);
}

bool Layout::same_filter(const Layout& other) const {
  return identity == other.identity && kind == other.kind && servers == other.servers &&
         hash == other.hash && secret == other.secret && window == other.window &&
         anchor == other.anchor && slicing == other.slicing && sites() == other.sites();
}

Layout Layout::next(std::int64_t now_ms) const {
  Layout changed = *this;
  ++changed.version;
  changed.changed_ms = std::max(changed_ms, now_ms);
  return changed;
}

std::string_view name_of(Layout::Kind kind) noexcept {
  return kind == Layout::Kind::filters ? "filter slices" : "cell slices";
}

std::string window_text(const Layout& layout) {
  return layout.window ? describe(*layout.window, layout.anchor == Anchor::refreshed) : "forever";
}

std::string encode(const Layout& layout) {
  layout.check();
  BytesEncoder fields;
  put_fields(layout, fields);
  BytesEncoder all;
  put(kMagic, all);
  all.u16(Layout::kFormat);
  all.u32(static_cast<std::uint32_t>(fields.written().size()));
  all.bytes(fields.written());
  const auto written = all.written();
  all.u64(checksum({reinterpret_cast<const char*>(written.data()), written.size()}));
  const auto bytes = all.written();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Layout decode_layout(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) corrupt("it begins otherwise");
  if (bytes.size() > Layout::kMostBytes)
    corrupt(fmt::format("it has {}, and a layout has at most {}", format_size(bytes.size()),
                        format_size(Layout::kMostBytes)));
  if (bytes.size() < kBeforeFields + kChecksum) corrupt("it is cut off");
  BytesDecoder begin(std::as_bytes(std::span(bytes.substr(kMagic.size()))));
  if (const std::uint16_t format = begin.u16(); format != Layout::kFormat)
    corrupt(
        fmt::format("it has format {}, and this sluice reads format {}: was it written by a "
                    "newer sluice?",
                    format, Layout::kFormat));
  const std::uint32_t length = begin.u32();
  if (length != bytes.size() - kBeforeFields - kChecksum)
    corrupt(fmt::format("it has {} bytes where it says {}", bytes.size(),
                        kBeforeFields + length + kChecksum));
  const std::string_view summed = bytes.substr(0, bytes.size() - kChecksum);
  BytesDecoder end(std::as_bytes(std::span(bytes.substr(summed.size()))));
  if (end.u64() != checksum(summed)) corrupt("its checksum is wrong: it was damaged");
  try {
    BytesDecoder fields(std::as_bytes(std::span(summed.substr(kBeforeFields))));
    Layout layout = take_fields(fields);
    layout.check();
    return layout;
  } catch (const CorruptSnapshot& error) {
    corrupt(error.what());
  } catch (const BadParameters& error) {
    corrupt(error.what());
  }
}

}  // namespace sluice::cluster
