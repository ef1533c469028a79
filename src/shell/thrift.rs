//! An allocator that keeps nothing back, for those who set a limit.

/// The number of the option in `mimalloc.h`: milliseconds for which freed memory is kept.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Has the allocator give freed memory back at once, and in pages of 4 KiB. It would keep as much again as queries asked for: freed blocks for a while, and
/// pages of 2 MiB of which little is in use. Both buy speed, which who sets a limit wants less.
pub(super) fn save_memory() {
    // SAFETY: the first sets a number that the allocator reads whenever it frees; the second takes no pointer and changes how the system maps memory.
    unsafe {
        libmimalloc_sys::mi_option_set(PURGE_DELAY, 0);
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}
