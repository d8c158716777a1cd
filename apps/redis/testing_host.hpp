// A server in a test: keys in a map, a clock that is set, memory that is counted and that fails when told
// to. It writes down what commands answer and which effects they tell; a second one, the replica, follows
// these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/redis/commands.hpp"
#include "apps/redis/entry.hpp"
#include "apps/redis/host.hpp"

namespace sluice::server {

// A reply as text: 1 is ":1", OK is "+OK", an error "-ERR ...", an array of two "[2] ..."; texts in quotes.
class WrittenReply final : public Reply {
 public:
  void integer(std::int64_t value) override { add(":" + std::to_string(value)); }
  void real(double value) override { add("," + std::to_string(value)); }
  void text(std::string_view value) override { add("'" + std::string(value) + "'"); }
  void status(std::string_view value) override { add("+" + std::string(value)); }
  void boolean(bool value) override { add(value ? "#t" : "#f"); }
  void null() override { add("_"); }
  void array(std::size_t values) override { add("[" + std::to_string(values) + "]", values); }
  void map(std::size_t pairs) override { add("{" + std::to_string(pairs) + "}", 2 * pairs); }
  void error(std::string_view sentence) override { add("-" + std::string(sentence)); }

  const std::string& written() const noexcept { return text_; }
  // Whether it is exactly one value: what an array or a map announced came, and no more.
  bool whole() const noexcept { return begun_ && owed_ == 0; }

 private:
  void add(const std::string& value, std::size_t more = 0) {
    if (begun_) text_ += ' ';
    text_ += value;
    owed_ += static_cast<std::int64_t>(more) - (begun_ ? 1 : 0);
    begun_ = true;
  }
  std::string text_;
  std::int64_t owed_ = 0;
  bool begun_ = false;
};

// malloc as a server gives it; the n-th call from now on fails if told to, and those that follow if that lasts.
struct FailingMalloc {
  static inline std::uint64_t calls = 0, fail_at = 0;  // 0: none fails
  static inline std::uint64_t held = 0, peak = 0;      // bytes asked for: now, and the most at once
  static inline std::uint64_t refusals = 0;
  static inline bool refuses_all = false;
  static inline bool lasts = false;  // those that follow fail, too

  static void* allocate(std::size_t bytes) {
    if (refuses_all) return nullptr;
    ++calls;
    if (fail_at != 0 && (calls == fail_at || (lasts && calls > fail_at))) {
      ++refusals;
      return nullptr;
    }
    auto* const block = static_cast<std::uint64_t*>(std::malloc(bytes + kBefore));
    if (block == nullptr) return nullptr;
    *block = bytes;
    peak = std::max(peak, held += bytes);
    return block + kBefore / sizeof *block;
  }
  static void free(void* block) {
    held -= size(block);
    std::free(static_cast<std::uint64_t*>(block) - kBefore / sizeof held);
  }
  // By the size alone, as of size classes.
  static std::size_t usable(void* block) { return (size(block) + 31) / 32 * 32; }
  static HostMemory::Calls all(bool tells_sizes) {
    HostMemory::Calls made{.allocate = allocate, .free = free};
    if (tells_sizes) made.usable = usable;
    return made;
  }

 private:
  static constexpr std::size_t kBefore = 16;  // for the size of the block; keeps its alignment
  static std::size_t size(void* block) {
    return *(static_cast<std::uint64_t*>(block) - kBefore / sizeof held);
  }
};

inline std::string bytes_of(const Entry& entry) {
  Encoded encoded(entry);
  std::string bytes(encoded.size(), '\0');
  const auto all = std::as_writable_bytes(std::span(bytes));
  std::size_t filled = 0;
  while (const std::size_t count = encoded.next(all.subspan(filled))) filled += count;
  bytes.resize(filled);
  return bytes;
}

inline Entry::Pointer entry_of(std::string_view bytes, MemoryResource& memory,
                               std::int64_t now_ms = 0) {
  BytesDecoder from(std::as_bytes(std::span(bytes)));
  return Entry::load(from, memory, now_ms);
}

class TestHost final : public Host {
 public:
  struct Slot {
    Entry::Pointer entry = {};      // null: the key holds something else,
    Partial::Pointer partial = {};  // or a part of an entry
    std::optional<std::int64_t> expiry = {};
  };
  // What replicas are told. No effect: the key is deleted.
  struct Told {
    std::string key;
    std::optional<std::string> effect;
    std::vector<std::string> sources;
  };

  explicit TestHost(bool tells_sizes = true) : memory_(FailingMalloc::all(tells_sizes)) {}

  // Runs a command, and returns its reply (WrittenReply).
  std::string call(std::vector<std::string> words) {
    words_ = std::move(words);
    for (auto each = keys.begin(); each != keys.end();)
      each = each->second.expiry && *each->second.expiry <= now && !follows ? expire(each) : ++each;
    return run_words();
  }
  std::string operator()(std::initializer_list<std::string> words) { return call(words); }

  // As a replica: what the primary told.
  std::string follow(const Told& what) {
    if (!what.effect) {
      keys.erase(what.key);
      return "+OK";
    }
    words_ = {"SLUICE.EFFECT", what.key, *what.effect};
    words_.insert(words_.end(), what.sources.begin(), what.sources.end());
    const bool before = std::exchange(follows, true);
    std::string reply = run_words();
    follows = before;
    return reply;
  }

  // As a person does, who is not the module.
  void erase(const std::string& key) {
    keys.erase(key);
    told.push_back({key, std::nullopt, {}});
  }
  Entry* entry(const std::string& key) {
    const auto found = keys.find(key);
    return found == keys.end() ? nullptr : found->second.entry.get();
  }

  std::int64_t now_ms() const override { return now; }
  MemoryResource& memory() override { return memory_; }
  std::uint64_t refusals() const override { return FailingMalloc::refusals; }
  void refuse_memory(bool all) override { FailingMalloc::refuses_all = all; }
  std::optional<std::uint64_t> room() override { return room_left; }
  const Config& config() const override { return settings; }
  bool replayed() const override { return follows; }
  Place& open(std::size_t word, Access access) override {
    return places_.emplace_back(*this, words_.at(word), access);
  }
  std::string_view word(std::size_t word) const override { return words_.at(word); }
  void redact(std::size_t word) override { redacted.push_back(words_.at(word)); }
  bool heard() const override { return !unheard; }
  void count_change() override {
    if (!unheard) std::abort();
    ++changes;
  }
  void replicate(std::size_t word, std::span<const std::byte> effect,
                 std::span<const std::size_t> sources) override {
    if (unheard) std::abort();
    ++changes;
    Told made{words_.at(word),
              std::string(reinterpret_cast<const char*>(effect.data()), effect.size()),
              {}};
    for (const std::size_t source : sources) made.sources.push_back(words_.at(source));
    told.push_back(std::move(made));
  }

 private:
  HostMemory memory_;  // outlives the keys

 public:
  std::int64_t now = 1'700'000'000'000;
  std::optional<std::uint64_t> room_left = {};
  Config settings = {};
  bool follows = false;
  bool unheard = false;       // nobody is told
  std::uint64_t changes = 0;  // that the server counts
  std::map<std::string, Slot> keys = {};
  std::vector<Told> told = {};
  std::vector<std::string> events = {}, redacted = {};

 private:
  class TestPlace final : public Place {
   public:
    TestPlace(TestHost& host, std::string name, Access access)
        : host_(host), name_(std::move(name)), access_(access) {}

    Entry* entry() override {
      const auto found = host_.keys.find(name_);
      if (found == host_.keys.end()) return nullptr;
      if (found->second.partial) refuse_partial(*found->second.partial);
      if (!found->second.entry) throw WrongType();
      return found->second.entry.get();
    }
    Partial* partial() override {
      const auto found = host_.keys.find(name_);
      return found == host_.keys.end() ? nullptr : found->second.partial.get();
    }
    void put(Entry::Pointer entry) override {
      must_write();
      Slot& slot = host_.keys[name_];
      slot.partial = {};
      slot.entry = std::move(entry);
    }
    void put(Partial::Pointer partial) override {
      must_write();
      Slot& slot = host_.keys[name_];
      slot.entry = {};
      slot.partial = std::move(partial);
    }
    void remove() override {
      must_write();
      host_.keys.erase(name_);
    }
    std::optional<std::int64_t> expiry_ms() const override { return host_.keys.at(name_).expiry; }
    void expire_at(std::int64_t ms) override {
      must_write();
      host_.keys.at(name_).expiry = ms;
    }
    void changed(const char* event) override {
      must_write();
      host_.events.push_back(event);
    }

   private:
    void must_write() const {
      if (access_ != Access::write) std::abort();
    }
    TestHost& host_;
    std::string name_;
    Access access_;
  };

  std::string run_words() {
    const Command* const command = command_named(words_.at(0));
    if (command == nullptr) return "-ERR unknown command";
    const std::vector<std::string_view> views(words_.begin(), words_.end());
    WrittenReply reply;
    run(*command, {.words = views, .host = *this, .reply = reply});
    places_.clear();
    if (!reply.whole()) return "not one reply: " + reply.written();
    return reply.written();
  }
  std::map<std::string, Slot>::iterator expire(std::map<std::string, Slot>::iterator each) {
    told.push_back({each->first, std::nullopt, {}});
    return keys.erase(each);
  }

  std::vector<std::string> words_;
  std::deque<TestPlace> places_;
};

}  // namespace sluice::server
