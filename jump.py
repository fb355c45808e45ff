from PIL import Image
big = np.concatenate([np.repeat(np.repeat(im, 6, 0), 6, 1) for im in (A[..., :3], np.repeat((off / off.max())[..., None] ** 0.3, 3, -1))], 0)
Image.fromarray((255 * np.clip(big, 0, 1)).astype(np.uint8)).save("/work/env/cloth/jump.png")
