// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/timer_queue.hpp>

#include <plumb/base/assert.hpp>

#include <initializer_list>

// A red-black tree as in the textbooks, with the two mirror images of each case folded into one: `to_left` says
// on which side of its parent the node stands.
namespace plumb {

void timer_queue::replace(timer_node const& node, timer_node* with) noexcept {
    timer_node* const parent = node.parent_;
    if (parent == nullptr) {
        root_ = with;
    } else if (parent->left_ == &node) {
        parent->left_ = with;
    } else {
        parent->right_ = with;
    }
    if (with != nullptr) {
        with->parent_ = parent;
    }
}

void timer_queue::rotate(timer_node& node, bool to_left) noexcept {
    timer_node* const up = to_left ? node.right_ : node.left_;
    timer_node*& inner = to_left ? up->left_ : up->right_;
    (to_left ? node.right_ : node.left_) = inner;
    if (inner != nullptr) {
        inner->parent_ = &node;
    }
    replace(node, up);
    inner = &node;
    node.parent_ = up;
}

void timer_queue::insert(timer_node& node, std::int64_t due) noexcept {
    PLUMB_ASSERT(!node.queued_);
    timer_node* parent = nullptr;
    timer_node** link = &root_;
    bool is_first = true;
    while (*link != nullptr) {
        parent = *link;
        if (due < parent->due_) {
            link = &parent->left_;
        } else {
            link = &parent->right_;
            is_first = false;
        }
    }
    node.parent_ = parent;
    node.left_ = nullptr;
    node.right_ = nullptr;
    node.due_ = due;
    node.red_ = true;
    node.queued_ = true;
    *link = &node;
    if (is_first) {
        first_ = &node;
    }
    mend_after_insert(&node);
}

void timer_queue::mend_after_insert(timer_node* node) noexcept {
    while (node->parent_ != nullptr && node->parent_->red_) {
        timer_node* const parent = node->parent_;
        timer_node* const grandparent = parent->parent_;  // a red node is never the root
        bool const on_left = parent == grandparent->left_;
        timer_node* const uncle = on_left ? grandparent->right_ : grandparent->left_;
        if (uncle != nullptr && uncle->red_) {
            parent->red_ = false;
            uncle->red_ = false;
            grandparent->red_ = true;
            node = grandparent;
            continue;
        }
        if (node == (on_left ? parent->right_ : parent->left_)) {
            rotate(*parent, on_left);
            node = parent;
        }
        node->parent_->red_ = false;
        grandparent->red_ = true;
        rotate(*grandparent, !on_left);
    }
    root_->red_ = false;
}

void timer_queue::erase(timer_node& node) noexcept {
    PLUMB_ASSERT(node.queued_);
    if (first_ == &node) {
        // The first has no left child, so its successor is the leftmost on its right, or else its parent.
        timer_node* next = node.right_;
        if (next == nullptr) {
            next = node.parent_;
        } else {
            while (next->left_ != nullptr) {
                next = next->left_;
            }
        }
        first_ = next;
    }
    timer_node* child;
    timer_node* parent;
    bool removed_black;
    if (node.left_ == nullptr || node.right_ == nullptr) {
        child = node.left_ != nullptr ? node.left_ : node.right_;
        parent = node.parent_;
        removed_black = !node.red_;
        replace(node, child);
    } else {
        timer_node* successor = node.right_;
        while (successor->left_ != nullptr) {
            successor = successor->left_;
        }
        child = successor->right_;
        removed_black = !successor->red_;
        if (successor->parent_ == &node) {
            parent = successor;
        } else {
            parent = successor->parent_;
            replace(*successor, child);
            successor->right_ = node.right_;
            successor->right_->parent_ = successor;
        }
        replace(node, successor);
        successor->left_ = node.left_;
        successor->left_->parent_ = successor;
        successor->red_ = node.red_;
    }
    node.queued_ = false;
    if (removed_black) {
        mend_after_erase(child, parent);
    }
}

void timer_queue::mend_after_erase(timer_node* node, timer_node* parent) noexcept {
    auto const black = [](timer_node const* n) noexcept { return n == nullptr || !n->red_; };
    while (node != root_ && black(node)) {
        bool const on_left = node == parent->left_;
        timer_node* sibling = on_left ? parent->right_ : parent->left_;
        if (sibling->red_) {
            sibling->red_ = false;
            parent->red_ = true;
            rotate(*parent, on_left);
            sibling = on_left ? parent->right_ : parent->left_;
        }
        if (black(sibling->left_) && black(sibling->right_)) {
            sibling->red_ = true;
            node = parent;
            parent = node->parent_;
            continue;
        }
        timer_node* outer = on_left ? sibling->right_ : sibling->left_;
        if (black(outer)) {
            (on_left ? sibling->left_ : sibling->right_)->red_ = false;
            sibling->red_ = true;
            rotate(*sibling, !on_left);
            sibling = on_left ? parent->right_ : parent->left_;
            outer = on_left ? sibling->right_ : sibling->left_;
        }
        sibling->red_ = parent->red_;
        parent->red_ = false;
        outer->red_ = false;
        rotate(*parent, on_left);
        node = root_;
    }
    if (node != nullptr) {
        node->red_ = false;
    }
}

/// @return the black nodes on each way down from here, or -1 where that differs or anything else is wrong
int timer_queue::black_height(timer_node const* node) noexcept {
    if (node == nullptr) {
        return 0;
    }
    for (timer_node const* const child : {node->left_, node->right_}) {
        if (child == nullptr) {
            continue;
        }
        bool const ordered =
            child == node->left_ ? child->due_ <= node->due_ : child->due_ >= node->due_;
        if (child->parent_ != node || (node->red_ && child->red_) || !child->queued_ || !ordered) {
            return -1;
        }
    }
    int const left = black_height(node->left_);
    return left < 0 || left != black_height(node->right_) ? -1 : left + !node->red_;
}

bool timer_queue::sound() const noexcept {
    timer_node const* leftmost = root_;
    while (leftmost != nullptr && leftmost->left_ != nullptr) {
        leftmost = leftmost->left_;
    }
    bool const root_is_sound = root_ == nullptr || (root_->parent_ == nullptr && !root_->red_);
    return root_is_sound && leftmost == first_ && black_height(root_) >= 0;
}

}  // namespace plumb
