// Waits for files to change: for runs that follow them, as `tail -F` does.
//
// The system says when something may have changed in the folders of the files (inotify), not what: after each
// wait, look at the files. Where it says nothing, as on file systems of a network, the wait ends after a
// second.
#pragma once

#include <string>

#include "connectors/files/files.hpp"

namespace sluice {

class FileWatch {
 public:
  // `wake`: a descriptor that ends a wait when it becomes readable, or -1.
  explicit FileWatch(int wake);

  // From here on, changes of this file end the next wait. It need not exist.
  void add(const std::string& path);
  // At most about a second.
  void wait();

 private:
  Descriptor events_;
  int wake_;
};

}  // namespace sluice
