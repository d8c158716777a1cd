#include "line_counter.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <new>

namespace {

constexpr std::uintptr_t kPage = 4096, kLine = 64;
constexpr int kOpen = PROT_READ | PROT_WRITE;

// All of it is used in a signal handler: no allocation, no locks.
struct Range {
  std::uintptr_t begin, end;
};
std::array<Range, 256> ranges;
std::size_t range_count = 0;
bool watching = false;
bool counting = false;

std::array<std::uintptr_t, 64> open_pages;  // of the instruction that is under way
std::size_t open_count = 0;

// Lines seen, as a hash table; an address is never 0.
constexpr std::size_t kSlots = std::size_t{1} << 18;
std::array<std::uintptr_t, kSlots> seen;
std::size_t seen_count = 0;

[[noreturn]] void give_up(const char* why) {
  if (write(STDERR_FILENO, why, __builtin_strlen(why)) < 0) _exit(1);
  _exit(1);
}

void see(std::uintptr_t line) {
  std::size_t slot = line / kLine * 0x9E3779B97F4A7C15 >> 46;
  while (seen[slot] != 0 && seen[slot] != line) slot = (slot + 1) % kSlots;
  if (seen[slot] == line) return;
  seen[slot] = line;
  if (++seen_count > kSlots / 2) give_up("line_counter: too many lines\n");
}

bool is_watched(std::uintptr_t address) {
  for (std::size_t i = 0; i < range_count; ++i)
    if (address >= ranges[i].begin && address < ranges[i].end) return true;
  return false;
}

int protect(std::uintptr_t begin, std::size_t bytes, int how) {
  return static_cast<int>(syscall(SYS_mprotect, begin, bytes, how));
}

void protect_all(int how) {
  for (std::size_t i = 0; i < range_count; ++i)
    protect(ranges[i].begin, ranges[i].end - ranges[i].begin, how);
}

void add_range(std::uintptr_t begin, std::size_t bytes) {
  if (range_count == ranges.size()) give_up("line_counter: too many tables\n");
  ranges[range_count++] = {begin, begin + (bytes + kPage - 1) / kPage * kPage};
}

// Unmapped pages leave the range that held them; a hole makes two of one.
void drop_range(std::uintptr_t begin, std::size_t bytes) {
  const std::uintptr_t end = begin + (bytes + kPage - 1) / kPage * kPage;
  for (std::size_t i = 0; i < range_count; ++i) {
    const Range old = ranges[i];
    if (end <= old.begin || begin >= old.end) continue;
    ranges[i] = {old.begin, begin};
    if (begin <= old.begin) ranges[i--] = ranges[--range_count];
    if (end < old.end) add_range(end, old.end - end);
  }
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kWorks = true;
constexpr greg_t kTrapFlag = 0x100;

greg_t& flags_of(void* context) {
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
}
#else
constexpr bool kWorks = false;
constexpr long kTrapFlag = 0;

long& flags_of(void*) {
  static long none = 0;
  return none;
}
#endif

void on_fault(int, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (!counting || !is_watched(address)) give_up("line_counter: a fault outside the tables\n");
  if (open_count == open_pages.size()) give_up("line_counter: too many pages at once\n");
  see(address / kLine * kLine);
  const std::uintptr_t page = address / kPage * kPage;
  protect(page, kPage, kOpen);
  open_pages[open_count++] = page;
  flags_of(context) |= kTrapFlag;
}

void on_step(int, siginfo_t*, void* context) {
  while (open_count > 0) protect(open_pages[--open_count], kPage, PROT_NONE);
  flags_of(context) &= ~kTrapFlag;
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(signal, &action, nullptr) != 0) give_up("line_counter: no handler\n");
}

}  // namespace

// The library's calls come here: it is linked into this program.
extern "C" {

void* mmap(void* at, std::size_t bytes, int how, int flags, int file, off_t offset) noexcept {
  void* const got = reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, how, flags, file, offset));
  if (watching && got != MAP_FAILED) {
    drop_range(reinterpret_cast<std::uintptr_t>(got), bytes);
    add_range(reinterpret_cast<std::uintptr_t>(got), bytes);
    if (counting) protect(reinterpret_cast<std::uintptr_t>(got), bytes, PROT_NONE);
  }
  return got;
}

int munmap(void* at, std::size_t bytes) noexcept {
  if (watching) drop_range(reinterpret_cast<std::uintptr_t>(at), bytes);
  return static_cast<int>(syscall(SYS_munmap, at, bytes));
}

int mprotect(void* at, std::size_t bytes, int how) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  return protect(begin, bytes, counting && is_watched(begin) ? PROT_NONE : how);
}

void* mremap(void* from, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
  std::va_list rest;
  va_start(rest, flags);
  void* const to = va_arg(rest, void*);
  va_end(rest);
  void* const got = reinterpret_cast<void*>(syscall(SYS_mremap, from, bytes, new_bytes, flags, to));
  if (watching && got != MAP_FAILED) {
    drop_range(reinterpret_cast<std::uintptr_t>(from), bytes);
    drop_range(reinterpret_cast<std::uintptr_t>(got), new_bytes);
    add_range(reinterpret_cast<std::uintptr_t>(got), new_bytes);
  }
  return got;
}

}  // extern "C"

namespace sluice::bench {

bool LineCounter::works() noexcept {
  return kWorks;
}

LineCounter::LineCounter() {
  handle(SIGSEGV, on_fault);
  handle(SIGTRAP, on_step);
  range_count = 0;
  watching = true;
}

LineCounter::~LineCounter() {
  watching = false;
}

std::size_t LineCounter::lines_of(const std::function<void()>& act) {
  seen.fill(0);
  seen_count = 0;
  counting = true;
  protect_all(PROT_NONE);
  act();
  counting = false;
  protect_all(kOpen);
  return seen_count;
}

void* WatchedMemory::get(std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes < kPage) return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
  void* const block =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void WatchedMemory::put(void* block, std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes < kPage) return ::operator delete(block, std::align_val_t(alignment));
  ::munmap(block, bytes);
}

}  // namespace sluice::bench
