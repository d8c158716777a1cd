#include "connectors/files/file_watch.hpp"

#include <poll.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/inotify.h>
#endif

#include <filesystem>

namespace sluice {
namespace {

constexpr int kWaitMilliseconds = 1000;

int open_events() {
#ifdef __linux__
  // It may be refused, or forbidden: then waits last a second.
  return inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
#else
  return -1;
#endif
}

}  // namespace

FileWatch::FileWatch(int wake) : events_(open_events(), true), wake_(wake) {}

void FileWatch::add([[maybe_unused]] const std::string& path) {
#ifdef __linux__
  if (!events_) return;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  inotify_add_watch(events_.number(), folder.empty() ? "." : folder.c_str(),
                    IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO);
#endif
}

void FileWatch::wait() {
  // poll ignores descriptors of -1.
  pollfd waiting[2] = {{events_.number(), POLLIN, 0}, {wake_, POLLIN, 0}};
  if (::poll(waiting, 2, kWaitMilliseconds) <= 0 || waiting[0].revents == 0) return;
  // What happened is for whoever looks at the files: the events are only taken.
  alignas(8) char events[16384];
  while (::read(events_.number(), events, sizeof events) > 0) {
  }
}

}  // namespace sluice
