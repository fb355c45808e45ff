"""Scene files from the data sets of other papers, read in the layouts that they document.

    python -m benchmarks.datasets pac-nerf FOLDER OUT
    python -m benchmarks.datasets spring-gaus FOLDER OUT
    python -m benchmarks.datasets rgbench FOLDER OUT --mesh MESH

FOLDER is one object or capture. OUT gets scene.toml, for `adjsim run`, and the files that it needs;
what is a guess there is said in its first lines. The loaders were written from the authors' code
and pages, and tried on folders of the same layout:

    pac-nerf      github.com/xuan-li/PAC-NeRF: all_data.json (file_path, c2w, intrinsic of every
                  picture), data/r_CAMERA_FRAME.png, of which frame -1 is the background
    spring-gaus   github.com/Colmar-zlicheng/Spring-Gaus, synthetic: camera.json (camera, K, c2w),
                  CAMERA/000.png, ... with alpha
    rgbench       github.com/hwk0809/RGBench: calibration/world_to_camera_transform.json,
                  joints/SIDE_arm_joint_states_and_end_pose.csv, segment_pcds/*.pcd
"""
