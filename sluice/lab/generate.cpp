#include "sluice/lab/generate.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "sluice/base/bits.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/memory.hpp"
#include "sluice/base/random.hpp"
#include "sluice/lab/zipf.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kUsersMost = 100'000'000;
constexpr std::uint64_t kFirstTimeMs = 1'700'000'000'000;
// The widest click: 5 numbers of at most 20 digits and 45 bytes of punctuation and names.
constexpr std::size_t kClickBytesMost = 192;

void check_share(const char* flag, double share) {
  if (!(share >= 0 && share <= 1))
    throw BadParameters(
        fmt::format("{} {} is out of range: give a share from 0 to 1", flag, share));
}

// A good 64-bit mix of a few words: what belongs to a number without being stored.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return SplitMix64(a ^ SplitMix64(b).next()).next();
}

char* put_text(char* at, std::string_view text) {
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

char* put_number(char* at, std::uint64_t number) {
  return std::to_chars(at, at + 20, number).ptr;
}

class ClickGenerator final : public Generator {
 public:
  explicit ClickGenerator(const ClickOptions& options)
      : options_(options),
        random_(options.seed),
        user_ranks_(options.users, options.skew),
        ages_(kClickMemory, 1.0),
        ads_seen_(options.users * sizeof(std::uint64_t)),
        recent_(kClickMemory) {
    // Rank to number is a bijection modulo `users`, so that fame does not show in the number.
    shift_ = scale_to(random_.next(), options.users);
    do stride_ = 1 + scale_to(random_.next(), options.users);
    while (std::gcd(stride_, options.users) != 1);
  }

  std::size_t largest_record() const noexcept override { return kClickBytesMost; }

  std::size_t fill(std::span<char> out) override {
    assert(out.size() >= kClickBytesMost);
    char* at = out.data();
    while (counts_.records < options_.records &&
           out.data() + out.size() - at >= static_cast<std::ptrdiff_t>(kClickBytesMost)) {
      time_ms_ += 1 + scale_to(random_.next(), 3);
      at = put_record(at);
      *at++ = '\n';
      ++counts_.records;
    }
    const auto bytes = static_cast<std::size_t>(at - out.data());
    counts_.bytes += bytes;
    return bytes;
  }

 private:
  struct Pair {
    std::uint64_t user;
    std::uint64_t ad;
  };

  char* put_record(char* at) {
    if (random_.next_unit() < options_.malformed) {
      ++counts_.malformed;
      return put_malformed(at);
    }
    if (counts_.distinct > 0 && random_.next_unit() < options_.duplicates) {
      ++counts_.duplicates;
      return put_click(at, earlier_pair());
    }
    const Pair pair = new_pair();
    recent_[counts_.distinct % kClickMemory] = pair;
    ++counts_.distinct;
    return put_click(at, pair);
  }

  std::uint64_t draw_user() {
    return (user_ranks_.draw(random_) * stride_ + shift_) % options_.users;
  }

  // A pair that has not been: each user's ads are counted, and the count is turned into an ad by a
  // bijection. It permutes the numbers of one octave (2^j to 2^(j+1) - 1) by an odd stride and a
  // shift of that user's: low numbers come first for everyone, yet not in the same order. The first
  // octave is that of 64, or most users' first ad would be the same one.
  Pair new_pair() {
    constexpr std::uint64_t kBefore = 63;
    const std::uint64_t user = draw_user();
    const std::uint64_t count = kBefore + ++ads_seen_.as<std::uint64_t>()[user];
    const std::uint64_t first = std::bit_floor(count);
    const std::uint64_t own = mix(options_.seed, user);
    const std::uint64_t place = (count * (own | 1) + (own >> 32)) & (first - 1);
    return {user, first + place - kBefore};
  }

  Pair earlier_pair() {
    for (;;) {
      const std::uint64_t age = ages_.draw(random_);
      if (age <= counts_.distinct) return recent_[(counts_.distinct - age) % kClickMemory];
    }
  }

  char* put_names(char* at, Pair pair) {
    at = put_number(put_text(at, R"({"user":"u)"), pair.user);
    return put_number(put_text(at, R"(","ad":"a)"), pair.ad);
  }

  // The rest after the pair: the time, and a value from 0.01 to 4.99 that belongs to the pair.
  char* put_tail(char* at, Pair pair) {
    at = put_number(put_text(at, R"("time":)"), time_ms_);
    const std::uint64_t cents = 1 + scale_to(mix(pair.user, pair.ad), 499);
    at = put_number(put_text(at, R"(,"value":)"), cents / 100);
    *at++ = '.';
    *at++ = static_cast<char>('0' + cents / 10 % 10);
    *at++ = static_cast<char>('0' + cents % 10);
    return put_text(at, "}");
  }

  char* put_click(char* at, Pair pair) {
    return put_tail(put_text(put_names(at, pair), R"(",)"), pair);
  }

  // None has a key, whichever way it is read: the cut comes before the ad's closing quote.
  char* put_malformed(char* at) {
    const Pair pair{draw_user(), 1 + scale_to(random_.next(), 1'000)};
    switch (scale_to(random_.next(), 4)) {
      case 0: {
        const char* const end = put_names(at, pair);
        const auto whole = static_cast<std::uint64_t>(end - at);
        return at + 1 + scale_to(random_.next(), whole);
      }
      case 1:
        return put_number(put_text(at, "-- click log rotated at "), time_ms_);
      case 2:  // no ad
        at = put_number(put_text(at, R"({"user":"u)"), pair.user);
        return put_tail(put_text(at, R"(",)"), pair);
      default:  // no user
        at = put_number(put_text(at, R"({"ad":"a)"), pair.ad);
        return put_tail(put_text(at, R"(",)"), pair);
    }
  }

  ClickOptions options_;
  SplitMix64 random_;
  ZipfSampler user_ranks_;
  ZipfSampler ages_;
  std::uint64_t stride_ = 1;
  std::uint64_t shift_ = 0;
  std::uint64_t time_ms_ = kFirstTimeMs;
  Memory ads_seen_;           // new pairs so far, one word a user
  std::vector<Pair> recent_;  // the last kClickMemory distinct pairs, a ring
};

constexpr std::array<char, 512> make_hex_pairs() {
  std::array<char, 512> pairs{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    pairs[2 * byte] = "0123456789abcdef"[byte >> 4];
    pairs[2 * byte + 1] = "0123456789abcdef"[byte & 15];
  }
  return pairs;
}
constexpr std::array<char, 512> kHexPairs = make_hex_pairs();

void put_hex(char* at, std::uint64_t word) {
  for (int shift = 56; shift >= 0; shift -= 8, at += 2)
    std::memcpy(at, &kHexPairs[2 * ((word >> shift) & 0xFF)], 2);
}

class LineGenerator final : public Generator {
 public:
  explicit LineGenerator(const LineOptions& options)
      : options_(options), random_(options.seed), first_(random_.next()) {}

  std::size_t largest_record() const noexcept override { return options_.length + 1; }

  std::size_t fill(std::span<char> out) override {
    assert(out.size() >= largest_record());
    const std::size_t room = out.size() / largest_record();
    char* at = out.data();
    for (std::size_t i = 0; i < room && counts_.records < options_.records; ++i) {
      ++counts_.records;
      std::uint64_t number = counts_.distinct;
      if (number > 0 && random_.next_unit() < options_.duplicates) {
        number = scale_to(random_.next(), number);
        ++counts_.duplicates;
      } else {
        ++counts_.distinct;
      }
      put_line(at, number);
      at += largest_record();
    }
    const auto bytes = static_cast<std::size_t>(at - out.data());
    counts_.bytes += bytes;
    return bytes;
  }

 private:
  // SplitMix64's step is a bijection of 64 bits: different numbers give different first words.
  void put_line(char* at, std::uint64_t number) const {
    SplitMix64 words(first_ + number);
    char* const end = at + options_.length;
    at = put_text(at, "evt-");
    put_hex(at, words.next());
    at += 16;
    if (at < end) *at++ = ',';
    for (; end - at >= 16; at += 16) put_hex(at, words.next());
    if (at < end) {
      char digits[16];
      put_hex(digits, words.next());
      std::memcpy(at, digits, static_cast<std::size_t>(end - at));
    }
    *end = '\n';
  }

  LineOptions options_;
  SplitMix64 random_;
  std::uint64_t first_;
};

}  // namespace

std::unique_ptr<Generator> make_generator(const ClickOptions& options) {
  check_share("`duplicates`", options.duplicates);
  check_share("`malformed`", options.malformed);
  if (!(options.skew >= 0 && options.skew <= ZipfSampler::kSkewMost))
    throw BadParameters(fmt::format(
        "`skew` {} is out of range: give a number from 0 (all users alike) to 4 (one dominates)",
        options.skew));
  if (options.users < 1 || options.users > kUsersMost)
    throw BadParameters(
        fmt::format("`users` {} is out of range: give a count from 1 to 100M", options.users));
  return std::make_unique<ClickGenerator>(options);
}

std::unique_ptr<Generator> make_generator(const LineOptions& options) {
  check_share("`duplicates`", options.duplicates);
  if (options.length < kLineLengthLeast || options.length > kLineLengthMost)
    throw BadParameters(
        fmt::format("`length` {} is out of range: give a length from {} to {} bytes",
                    options.length, kLineLengthLeast, kLineLengthMost));
  return std::make_unique<LineGenerator>(options);
}

}  // namespace sluice
