// Seen: has this key been seen before? The library in one class.
//
//   sluice::Seen seen({.window = 10min, .fpr = 1e-6});   // planned for you: seen.plan() says what
//   if (seen.first("user-17:ad-3")) deliver(event);      // true once per window
//
// Say what you know and leave out the rest:
//
//   {}                      every key, forever; memory grows with the keys
//   {.keys = 50'000'000}    every key, with room for that many from the start
//   {.window = 10min}       the keys let through in the last ten minutes
//   {.window = 1'000'000}   the last million keys let through
//   {.memory = 64 << 20}    as much of the past as fits in 64 MiB
//
// A key that was seen is never judged new while its window lasts, with these exceptions:
//
//   late          an event that is a window or more behind the latest is let through unjudged
//   max_ahead     an event whose time is not believed is let through; and if the time of the first
//                 event is not confirmed, and a much earlier event follows, all keys are forgotten
//   memory alone  a large `fpr` may make the planner choose a filter that forgets at random
//   filter        `stable`, `reservoir`, and `timer` with equal=2 or more, let duplicates pass
//
// A new key may be judged seen, with probability `fpr`; its event is then lost. plan() and stats()
// give the predicted rate.
//
// Threads: const calls (contains, stats, save, clone) may run at the same time. A call that is not
// const must not run at the same time as any other call. If strangers choose the keys, set
// `untrusted_keys` (SECURITY.md).
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
#include "sluice/snapshot/snapshot.hpp"

namespace sluice {

template <class T, class... Others>
concept OneOf = (std::same_as<T, Others> || ...);

// How much of the past counts: a duration, or a number of keys that were let through.
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
  // "10m", "1M", or "hour" or "day" (since the last full hour or day, UTC). Throws BadParameters.
  WindowLength(const char* text);
  WindowLength(const std::string& text) : WindowLength(std::string_view(text)) {}
  WindowLength(std::string_view text);

  const WindowSpec& spec() const noexcept { return spec_; }

 private:
  static void check_seconds(long double seconds);
  WindowSpec spec_;
};

// A Seen that was moved from may only be destroyed or assigned to.
class Seen {
 public:
  // From the year 1823 to 2116. Times outside count as the first or the last of these.
  using Time = std::chrono::sys_time<std::chrono::nanoseconds>;
  enum class Nothing : char {};  // makes Seen({}) unambiguous: Options, not a Seen to move from

  struct Options {
    std::optional<WindowLength> window = {};  // none: forever
    bool refresh = false;                     // every repeat restarts the key's window
    // With a time window, for calls that give times: a time further than this ahead of the latest
    // is not believed until a second one agrees, and its key is let through. None: every time is
    // believed, and one wild time expires all keys.
    std::optional<std::chrono::nanoseconds> max_ahead = {};
    // How many distinct keys to expect: in total, or in one time window. With a time window, `rate`
    // (distinct keys per second) may be given instead. A window of a number of keys takes neither.
    std::optional<std::uint64_t> keys = {};
    std::optional<double> rate = {};
    // Probability of losing a new key. By default 1e-6. With `memory`, by default the lowest that
    // fits; for a time window no lower than 1e-6, so that it can grow in the rest of the memory. If
    // it would have to be more than 1 %, that is refused: give `fpr` to accept it.
    std::optional<double> fpr = {};
    // The limit of bytes(). If it is the only option, it must be at least 1 MiB. With a time window
    // it needs `keys` or `rate`, and the window may grow up to it. When it is used up, keys are
    // neither judged nor remembered (see observe) until others have left the window.
    std::optional<std::uint64_t> memory = {};
    // A filter to use instead of the planner's choice, such as "cohort,slot=32". It is sized for
    // `keys` or `rate` as the planner would size it; without these, it has its own default size. If
    // the text has bytes= or keys=, they are used as they are. Cannot be combined with `memory`.
    std::string filter = {};
    bool untrusted_keys = false;             // true if strangers choose keys: a keyed hash
    std::optional<std::uint64_t> seed = {};  // the same seed gives the same verdicts; none: random
    MemoryResource* resource = nullptr;      // where memory comes from; default_memory() if null
  };

  // Throws BadParameters, naming the impossible option, and NoMemory.
  Seen() : Seen(Options{}) {}
  explicit Seen(Nothing) : Seen(Options{}) {}
  explicit Seen(const Options& options);

  // Whether the key is new; it is remembered from then on. The event happens now, by the system's
  // clock, or at `when`. A late event, a window or more behind the latest, is let through (true)
  // and not remembered; Window::judge of filter().window() tells which events are late.
  // Throws NoMemory; the key is then neither judged nor remembered.
  bool first(std::string_view key);
  bool first(std::string_view key, Time when);

  // The same for many keys, in order: verdicts[i] is the verdict on keys[i]. Returns how many were
  // judged. That is fewer than all if memory ran out; the rest are then as if they had not come.
  // Throws BadParameters if the spans differ in length.
  std::size_t observe(std::span<const std::string_view> keys, std::span<Verdict> verdicts);
  std::size_t observe(std::span<const std::string_view> keys, std::span<const Time> times,
                      std::span<Verdict> verdicts);

  // Asks, and changes nothing: contains(key, when) is what !first(key, when) would be.
  bool contains(std::string_view key) const;
  bool contains(std::string_view key, Time when) const;

  // Takes a key back; returns whether there was a trace of it. Throws BadParameters if the filter
  // cannot forget.
  bool forget(std::string_view key);
  void clear() noexcept { filter_.clear(); }
  // Takes in what `other` remembers. Both must have the same options and the same seed, or come
  // from a clone, and the filter must be able to merge: windows cannot (docs/merging.md). Otherwise
  // throws BadParameters and changes nothing.
  void merge(const Seen& other);

  // The plan and its reason. The chosen candidate is the only one listed: sluice::plan(request)
  // lists all. Null if this was loaded, or if `filter` was given.
  const Planning* plan() const noexcept { return plan_ && plan_->chosen ? plan_.get() : nullptr; }
  // Reads no clock: the numbers of a window are as of the last key that was judged. A key is
  // counted until the generation in which it was written has left the window, which is at most the
  // slack later than the key itself.
  FilterStats stats() const { return filter_.stats(); }
  // All the memory that it has taken from its resource; the object itself is not counted.
  std::uint64_t bytes() const noexcept { return filter_.bytes(); }

  // State to bytes and back. The bytes contain the secret of the hash: protect them like a
  // password. Labels of the state that was loaded (snapshot.hpp) are kept and written again, unless
  // others are given.
  std::vector<std::byte> save() const { return save(labels()); }
  std::vector<std::byte> save(const Labels& labels) const;
  // Throws CorruptSnapshot. The bytes may come from anywhere: they cannot harm the process.
  static Seen load(std::span<const std::byte> bytes, MemoryResource* resource = nullptr);
  // Writes a file. Even in a crash the file is replaced completely or not at all. The previous one
  // stays as FILE.previous. FILE.lock is held only during the write: if two processes load, add
  // keys and save, the file of the last one remains. Throws IoError, with EBUSY if another process
  // holds the lock.
  void save(const std::filesystem::path& file) const { save(file, labels()); }
  void save(const std::filesystem::path& file, const Labels& labels) const;
  // Throws IoError and CorruptSnapshot; if there is no file, IoError with error_number() ENOENT.
  static Seen load(const std::filesystem::path& file, MemoryResource* resource = nullptr);
  // Returns nothing if there is no file.
  static std::optional<Seen> load_if_there(const std::filesystem::path& file,
                                           MemoryResource* resource = nullptr);
  // An independent copy, in the same memory resource.
  Seen clone() const;
  // Those of the state that was loaded.
  const Labels& labels() const noexcept;

  // Access to what this class does not offer.
  const Hasher& hasher() const noexcept { return hasher_; }
  AnyFilter& filter() noexcept { return filter_; }
  const AnyFilter& filter() const noexcept { return filter_; }

 private:
  Seen(const Hasher& hasher, AnyFilter filter, std::shared_ptr<const Planning> plan);
  static Seen of(Snapshot&& snapshot);

  Hasher hasher_;
  std::shared_ptr<const Planning> plan_;  // without a choice: the labels of a loaded state
  AnyFilter filter_;
};

}  // namespace sluice
