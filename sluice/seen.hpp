// Seen: has this key been seen before? The library in one class.
//
//   sluice::Seen seen({.window = 10min, .fpr = 1e-6});   // planned for you: seen.plan() says what
//   if (seen.first("user-17:ad-3")) deliver(event);      // true once per window
//
// Say what you know and leave out the rest:
//
//   {}                                  every key, for good; memory grows with the keys
//   {.keys = 50'000'000}                every key, for so many from the start
//   {.window = 10min}                   what was let through in the last ten minutes
//   {.window = 1'000'000}               the last million that were let through
//   {.memory = 64 << 20}                as much of the past as fits 64 MiB
//
// A key that was seen is never taken for a new one while its window lasts. Two kinds of records are
// let through all the same: those that come a window or more after their time, and, with `max_ahead`,
// those whose time is not believed. A new key may be taken for one that was seen, with probability
// `fpr`; that event is then lost. plan() and stats() tell how often.
//
// Not for several threads at once. Keys that strangers choose need `untrusted_keys` (SECURITY.md).
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/memory_resource.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/plan/plan.hpp"

namespace sluice {

template <class T, class... Others>
concept OneOf = (std::same_as<T, Others> || ...);

// How much of the past counts: a duration, or so many keys that were let through.
class WindowLength {
 public:
  // At most 73 years. Throws BadParameters.
  template <class Rep, class Period>
  WindowLength(std::chrono::duration<Rep, Period> time) {
    const long double seconds = std::chrono::duration<long double>(time).count();
    check_seconds(seconds);
    spec_.kind = WindowSpec::Kind::time;
    if (seconds > 0)
      spec_.size = static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  }
  template <std::integral Keys>
  requires(!OneOf<Keys, bool, char, wchar_t, char8_t, char16_t, char32_t>) WindowLength(Keys keys)
      : spec_{WindowSpec::Kind::count, keys > 0 ? static_cast<std::uint64_t>(keys) : 0} {}
  // "10m", "1M", "hour" or "day" (since the last whole one, UTC). Throws BadParameters.
  WindowLength(const char* text) : WindowLength(std::string_view(text)) {}
  WindowLength(const std::string& text) : WindowLength(std::string_view(text)) {}
  WindowLength(std::string_view text);

  const WindowSpec& spec() const noexcept { return spec_; }

 private:
  static void check_seconds(long double seconds);
  WindowSpec spec_;
};

class Seen {
 public:
  using Time = std::chrono::sys_time<std::chrono::nanoseconds>;
  enum class Nothing : char {};  // Seen({}), which could be Options or a Seen to move from

  struct Options {
    std::optional<WindowLength> window = {};  // none: for good
    bool refresh = false;                     // every repeat starts the window anew
    // Times that are given: one further ahead of the latest is not believed until a second agrees,
    // and its key is let through. None: all are believed, and one wild time ends the window.
    std::optional<std::chrono::nanoseconds> max_ahead = {};
    std::optional<std::uint64_t> keys = {};  // how many different ones; of a time window: in it
    std::optional<double> rate = {};         // the same, per second, of a time window
    std::optional<double> fpr = {};  // chance to lose a new key; 1e-6, or what memory allows
    // Bytes: bytes() stays below. A window grows into what is left; when that is used up, keys are
    // neither judged nor remembered (see observe) until others have left the window.
    std::optional<std::uint64_t> memory = {};
    // "cohort,slot=32": instead of the planner's choice, for `keys`, or 8 million.
    std::string filter = {};
    bool untrusted_keys = false;  // chosen by strangers: a keyed hash that withstands them
    std::optional<std::uint64_t> seed = {};  // the same seed gives the same verdicts; else random
    MemoryResource* resource = nullptr;      // where memory comes from; default_memory() if null
  };

  // Throws BadParameters, naming the option that cannot be, and NoMemory.
  Seen() : Seen(Options{}) {}
  explicit Seen(Nothing) : Seen(Options{}) {}
  explicit Seen(const Options& options);

  // Whether the key is new: true for the first of its kind, and it is remembered from then on. The
  // event happens now, by the system's clock, or at `when`. One that is older than the window is let
  // through and not remembered. Throws NoMemory; the key is then neither judged nor remembered.
  bool first(std::string_view key);
  bool first(std::string_view key, Time when);

  // The same for many, in order: verdicts[i] is the verdict on keys[i]. Returns how many were judged:
  // fewer than all when memory ended, and then the others are as if they had not come. Throws
  // BadParameters where the spans differ in length.
  std::size_t observe(std::span<const std::string_view> keys, std::span<Verdict> verdicts);
  std::size_t observe(std::span<const std::string_view> keys, std::span<const Time> times,
                      std::span<Verdict> verdicts);

  // Asks, and changes nothing: contains(key, when) is what !first(key, when) would be.
  bool contains(std::string_view key) const;
  bool contains(std::string_view key, Time when) const;

  // Takes a key back; whether there was a trace of it. Throws BadParameters where the filter cannot.
  bool forget(std::string_view key);
  void clear() noexcept { filter_.clear(); }
  // Remembers what `other` does, too. Throws BadParameters, and is as it was, unless both were made
  // alike, with one seed or one from a clone of the other, of a filter that can (docs/merging.md).
  void merge(const Seen& other);

  // What was planned and why, with all that was weighed. Null for one that was loaded, or whose filter
  // was named.
  const Planning* plan() const noexcept { return plan_.get(); }
  FilterStats stats() const { return filter_.stats(); }
  // All the memory that it holds of its resource. What is beside is the object itself.
  std::uint64_t bytes() const noexcept { return filter_.bytes(); }

  // As bytes and back. They hold the secret of the hash: keep them as you would keep a password.
  std::vector<std::byte> save() const;
  // Throws CorruptSnapshot. The bytes may come from anywhere: they cannot harm the process.
  static Seen load(std::span<const std::byte> bytes, MemoryResource* resource = nullptr);
  // In a file that is replaced as a whole, or not at all, whatever happens. The one before stays as
  // FILE.previous; FILE.lock is there while it is written. Throws IoError.
  void save(const std::filesystem::path& file) const;
  // Throws IoError and CorruptSnapshot; where there is no file, IoError with error_number() ENOENT.
  static Seen load(const std::filesystem::path& file, MemoryResource* resource = nullptr);
  // Nothing where there is no file.
  static std::optional<Seen> load_if_there(const std::filesystem::path& file,
                                           MemoryResource* resource = nullptr);
  // Goes on by itself from here.
  Seen clone() const;

  // For what this class leaves out.
  const Hasher& hasher() const noexcept { return hasher_; }
  AnyFilter& filter() noexcept { return filter_; }
  const AnyFilter& filter() const noexcept { return filter_; }

 private:
  Seen(const Hasher& hasher, AnyFilter filter, std::shared_ptr<const Planning> plan = nullptr);

  Hasher hasher_;
  std::shared_ptr<const Planning> plan_;
  AnyFilter filter_;
};

}  // namespace sluice
