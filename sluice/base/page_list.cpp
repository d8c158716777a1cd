#include "sluice/base/page_list.hpp"

#include <memory>
#include <utility>

namespace sluice {

PageList::~PageList() {
  for (GrownPage* const list : lists_)
    give_back(list, std::min<std::size_t>(room_, GrownPages::kPerList));
}

void swap(PageList& a, PageList& b) noexcept {
  std::swap(a.lists_, b.lists_);
  std::swap(a.size_, b.size_);
  std::swap(a.room_, b.room_);
  std::swap(a.usable_, b.usable_);
}

GrownPage* PageList::take(std::size_t pages) {
  auto* const list =
      static_cast<GrownPage*>(resource().allocate(pages * sizeof(GrownPage), alignof(GrownPage)));
  std::uninitialized_value_construct_n(list, pages);
  usable_ += resource().usable(list, pages * sizeof(GrownPage), alignof(GrownPage));
  return list;
}

void PageList::give_back(GrownPage* list, std::size_t pages) noexcept {
  usable_ -= resource().usable(list, pages * sizeof(GrownPage), alignof(GrownPage));
  resource().deallocate(list, pages * sizeof(GrownPage), alignof(GrownPage));
}

// The first list doubles until it is a whole one; the others are made whole.
void PageList::reserve(std::size_t pages) {
  if (pages <= room_) return;
  const std::size_t lists = (pages + GrownPages::kPerList - 1) / GrownPages::kPerList;
  if (lists > lists_.capacity()) lists_.reserve(std::max(lists, 2 * lists_.capacity()));
  if (room_ < GrownPages::kPerList) {
    const std::size_t room =
        std::min<std::size_t>(std::max(pages, 2 * room_), GrownPages::kPerList);
    GrownPage* const list = take(room);
    if (room_ == 0) {
      lists_.push_back(list);
    } else {
      std::copy_n(lists_[0], size_, list);
      give_back(std::exchange(lists_[0], list), room_);
    }
    room_ = room;
  }
  while (room_ < pages) {
    lists_.push_back(take(GrownPages::kPerList));
    room_ += GrownPages::kPerList;
  }
}

std::uint64_t PageList::bytes_for(std::uint64_t pages) noexcept {
  const std::uint64_t lists = (pages + GrownPages::kPerList - 1) / GrownPages::kPerList;
  return std::min(pages, GrownPages::kPerList) * sizeof(GrownPage) +
         (lists > 1 ? (lists - 1) * GrownPages::kPerList * sizeof(GrownPage) : 0) +
         lists * sizeof(GrownPage*);
}

}  // namespace sluice
