#include "apps/redis/module_type.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "apps/redis/effects.hpp"
#include "apps/redis/module_memory.hpp"
#include "sluice/base/error.hpp"

namespace sluice::server {
namespace {

constexpr int kEncoding = 1;
constexpr std::size_t kChunk = std::size_t{1} << 20;

RedisModuleType* type = nullptr;
RedisModuleType* type_of_partials = nullptr;

void log_problem(RedisModuleIO* io, const char* what) {
  RedisModule_LogIOError(io, "warning", "sluice: %s", what);
}

// Calls `take` with each part of the entry's bytes, of at most 1 MiB.
template <class Take>
void each_chunk(const Entry& entry, const Take& take) {
  Encoded encoded(entry);
  const std::size_t size =
      static_cast<std::size_t>(std::min<std::uint64_t>(encoded.size(), kChunk));
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(size);
  while (const std::size_t count = encoded.next({buffer.get(), size}))
    take(reinterpret_cast<const char*>(buffer.get()), count);
}

// Chunks, then an empty one.
void save(RedisModuleIO* io, void* value) noexcept {
  try {
    each_chunk(*static_cast<const Entry*>(value), [&](const char* bytes, std::size_t count) {
      RedisModule_SaveStringBuffer(io, bytes, count);
    });
  } catch (const std::exception& error) {
    // The server cannot be told: what it saves is refused when it is loaded.
    log_problem(io, error.what());
  }
  RedisModule_SaveStringBuffer(io, "", 0);
}

struct Free {
  void operator()(char* bytes) const noexcept { RedisModule_Free(bytes); }
};
using Part = std::unique_ptr<char, Free>;

// Calls `take` with each part that was saved, up to the empty one. False: there is none, or a part is longer
// than those that we write.
template <class Take>
bool each_part(RedisModuleIO* io, const Take& take) {
  while (true) {
    std::size_t size = 0;
    Part part(RedisModule_LoadStringBuffer(io, &size));
    if (part == nullptr || RedisModule_IsIOError(io) || size > kChunk) return false;
    if (size == 0) return true;
    take(std::move(part), size);
  }
}

// The bytes of a value, all there before anything is decoded: what a forged length promises does not count.
// Each part is freed as soon as it was read.
class LoadedBytes final : public Decoder {
 public:
  // False: the file ends too early, or has parts that nobody writes.
  bool read(RedisModuleIO* io) {
    return each_part(io, [this](Part part, std::size_t size) {
      parts_.push_back({std::move(part), size});
      left_ += size;
    });
  }

  void bytes(std::span<std::byte> out) override {
    if (out.size() > left_) throw CorruptSnapshot("it ends too early");
    left_ -= out.size();
    while (!out.empty()) {
      auto& [part, size] = parts_[at_];
      const std::size_t count = std::min(out.size(), size - offset_);
      std::memcpy(out.data(), part.get() + offset_, count);
      out = out.subspan(count);
      offset_ += count;
      if (offset_ < size) continue;
      part.reset();
      ++at_;
      offset_ = 0;
    }
  }
  std::uint64_t remaining() const override { return left_; }

 private:
  struct Sized {
    Part part;
    std::size_t size;
  };
  std::vector<Sized> parts_;
  std::size_t at_ = 0, offset_ = 0;
  std::uint64_t left_ = 0;
};

void* load(RedisModuleIO* io, int encoding) noexcept {
  if (encoding != kEncoding) {
    log_problem(io, "this value was written by a newer version of the module: load that one");
    return nullptr;
  }
  try {
    LoadedBytes bytes;
    if (!bytes.read(io)) {
      log_problem(io, "a value is not complete");
      return nullptr;
    }
    return Entry::load(bytes, server_memory(), RedisModule_Milliseconds()).release();
  } catch (const std::exception& error) {
    log_problem(io, error.what());
    return nullptr;
  }
}

void release(void* value) noexcept {
  ResourceDelete<Entry>{&server_memory()}(static_cast<Entry*>(value));
}

std::size_t memory_usage(RedisModuleKeyOptCtx*, const void* value, std::size_t) noexcept {
  return static_cast<const Entry*>(value)->bytes();
}

std::size_t free_effort(RedisModuleKeyOptCtx*, const void* value) noexcept {
  return static_cast<const Entry*>(value)->blocks();
}

void* copy(RedisModuleKeyOptCtx*, const void* value) noexcept {
  try {
    return static_cast<const Entry*>(value)->clone(server_memory()).release();
  } catch (const std::exception&) {
    return nullptr;
  }
}

template <class Value>
void rewrite_value(RedisModuleIO* io, RedisModuleString* key, void* value) noexcept {
  try {
    rewrite(*static_cast<const Value*>(value), [&](std::span<const std::byte> effect) {
      RedisModule_EmitAOF(io, "SLUICE.EFFECT", "sb", key,
                          reinterpret_cast<const char*>(effect.data()), effect.size());
    });
  } catch (const std::exception& error) {
    log_problem(io, error.what());
    // There is no other way to tell the server: a command that does not exist fails the rewrite, and the
    // file that there was stays.
    RedisModule_EmitAOF(io, "SLUICE.NOT_WRITTEN", "");
  }
}

void digest(RedisModuleDigest* md, void* value) noexcept {
  try {
    each_chunk(*static_cast<const Entry*>(value), [&](const char* bytes, std::size_t count) {
      RedisModule_DigestAddStringBuffer(md, bytes, count);
    });
  } catch (const std::exception&) {
    RedisModule_DigestAddStringBuffer(md, "no memory", 9);
  }
  RedisModule_DigestEndSequence(md);
}

// --- Values that are still being loaded: their chunks, then an empty string.

void save_partial(RedisModuleIO* io, void* value) noexcept {
  try {
    static_cast<const Partial*>(value)->each_chunk(0, [&](std::span<const std::byte> chunk) {
      RedisModule_SaveStringBuffer(io, reinterpret_cast<const char*>(chunk.data()), chunk.size());
    });
  } catch (const std::exception& error) {
    log_problem(io, error.what());
  }
  RedisModule_SaveStringBuffer(io, "", 0);
}

void* load_partial(RedisModuleIO* io, int encoding) noexcept {
  try {
    if (encoding != kEncoding) throw CorruptSnapshot("it was written by a newer version");
    Partial::Pointer partial;
    const bool complete = each_part(io, [&](const Part& part, std::size_t size) {
      const Chunk chunk = Chunk::read(std::as_bytes(std::span(part.get(), size)));
      if (chunk.last()) throw CorruptSnapshot("it has all its chunks");
      if (partial)
        partial->add(chunk);
      else
        partial = Partial::begin(chunk, server_memory());
    });
    if (!complete || !partial) throw CorruptSnapshot("it is not complete");
    return partial.release();
  } catch (const std::exception& error) {
    log_problem(io, error.what());
    return nullptr;
  }
}

void release_partial(void* value) noexcept {
  ResourceDelete<Partial>{&server_memory()}(static_cast<Partial*>(value));
}

std::size_t usage_of_partial(RedisModuleKeyOptCtx*, const void* value, std::size_t) noexcept {
  return static_cast<const Partial*>(value)->bytes();
}

std::size_t effort_of_partial(RedisModuleKeyOptCtx*, const void* value) noexcept {
  return static_cast<const Partial*>(value)->blocks();
}

void* copy_partial(RedisModuleKeyOptCtx*, const void* value) noexcept {
  try {
    return static_cast<const Partial*>(value)->clone(server_memory()).release();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void digest_partial(RedisModuleDigest* md, void* value) noexcept {
  try {
    static_cast<const Partial*>(value)->each_chunk(0, [&](std::span<const std::byte> chunk) {
      RedisModule_DigestAddStringBuffer(md, reinterpret_cast<const char*>(chunk.data()),
                                        chunk.size());
    });
  } catch (const std::exception&) {
    RedisModule_DigestAddStringBuffer(md, "no memory", 9);
  }
  RedisModule_DigestEndSequence(md);
}

}  // namespace

RedisModuleType* entry_type() noexcept {
  return type;
}

RedisModuleType* partial_type() noexcept {
  return type_of_partials;
}

bool make_types(RedisModuleCtx* ctx) {
  RedisModuleTypeMethods partials{};
  partials.version = REDISMODULE_TYPE_METHOD_VERSION;
  partials.rdb_load = load_partial;
  partials.rdb_save = save_partial;
  partials.aof_rewrite = rewrite_value<Partial>;
  partials.digest = digest_partial;
  partials.free = release_partial;
  partials.mem_usage2 = usage_of_partial;
  partials.free_effort2 = effort_of_partial;
  partials.copy2 = copy_partial;
  type_of_partials = RedisModule_CreateDataType(ctx, "sluiceprt", kEncoding, &partials);
  RedisModuleTypeMethods methods{};
  methods.version = REDISMODULE_TYPE_METHOD_VERSION;
  methods.rdb_load = load;
  methods.rdb_save = save;
  methods.aof_rewrite = rewrite_value<Entry>;
  methods.digest = digest;
  methods.free = release;
  methods.mem_usage2 = memory_usage;
  methods.free_effort2 = free_effort;
  methods.copy2 = copy;
  type = RedisModule_CreateDataType(ctx, "sluiceflt", kEncoding, &methods);
  return type != nullptr && type_of_partials != nullptr;
}

}  // namespace sluice::server
