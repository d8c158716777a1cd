// A file with random access, for making and applying deltas.
#pragma once

#include <string>

#include "sluice/snapshot/delta.hpp"

namespace sluice {

class StoredFile final : public StoredBytes {
 public:
  // Throws IoError, and StateRefused when it is missing or not a regular file.
  explicit StoredFile(const std::string& path);
  ~StoredFile() override;
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;

  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  const std::string& name() const override { return path_; }

 private:
  std::string path_;
  int file_;
  std::uint64_t size_ = 0;
};

}  // namespace sluice
